"""The control file: written by commands, followed by running processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nexo.control import FILE_NAME, Control, ControlWatch, read_control, write_control
from nexo.errors import StartupError


def test_what_was_written_is_read_and_only_the_owner_may_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert read_control(folder) == Control()
    control = Control(log_level="debug", ack_users=["ann"])
    path = write_control(folder, control)
    assert read_control(folder) == control
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in folder.iterdir()] == [FILE_NAME]


def test_a_change_is_applied_once_and_a_removed_file_is_the_configuration_again(tmp_path: Path) -> None:
    applied: list[Control] = []
    watch = ControlWatch(tmp_path, applied.append)
    watch.look()
    assert applied == []
    write_control(tmp_path, Control(ack_sample=0.5))
    watch.look()
    watch.look()
    assert applied == [Control(ack_sample=0.5)]
    (tmp_path / FILE_NAME).unlink()
    watch.look()
    assert applied[1:] == [Control()]


@pytest.mark.parametrize("text", ["", "{", '{"log_level": "loud"}', '{"unknown": 1}', "[]", "\udcff"])
def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path, text: str) -> None:
    applied: list[Control] = []
    watch = ControlWatch(tmp_path, applied.append)
    (tmp_path / FILE_NAME).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StartupError):
        read_control(tmp_path)
    with capture_logs() as lines:
        watch.look()
        watch.look()
    assert applied == []
    assert [line["event"] for line in lines] == ["control_file_kept_old"], "logged once"
