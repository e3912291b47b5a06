"""Settings that change while a process runs: the log section and the share of two-phase acknowledgement, from the
configuration and the control file."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from msgspec import structs

from nexo.background import Background
from nexo.config import Config, resolve_data_dir
from nexo.config.tree import LogConfig
from nexo.control import Control, ControlWatch
from nexo.errors import StartupError
from nexo.logs import delivery_lines, set_log_level

log = structlog.get_logger()

TwoPhaseState = tuple[float, bool]  # share of conversations, whether to measure only
Reread = Callable[[], Config]  # the configuration as it is now


class LiveSettings:
    def __init__(self, config: Config, reread: Reread | None) -> None:
        self._log = config.log
        self._two_phase = _state_of(config)
        self._switch: Callable[[float, bool], None] | None = None
        self._switched = self._two_phase
        self._reread = reread
        self._watch = ControlWatch(resolve_data_dir(config), self._apply)
        self._applied: LogConfig | None = None
        self._watch.apply_again()
        self._watch.look()

    def follow_two_phase(self, switch: Callable[[float, bool], None]) -> None:
        """Call `switch` with share and observe, now if it differs from the configuration, and on changes."""
        self._switch = switch
        self._watch.apply_again()

    def start(self, background: Background) -> None:
        background.serve("control_file", self._watch.run)

    def reload(self) -> None:
        """Read configuration and control file again (SIGHUP). What cannot be read changes nothing."""
        if self._reread is not None:
            try:
                config = self._reread()
                self._log, self._two_phase = config.log, _state_of(config)
            except StartupError as error:
                log.warning("configuration_kept_old", reason=str(error))
        self._watch.look()
        self._watch.apply_again()

    def _apply(self, control: Control) -> None:
        given = {
            "level": control.log_level,
            "ack_sample": control.ack_sample,
            "ack_users": control.ack_users,
            "ack_conversations": control.ack_conversations,
        }
        chosen = structs.replace(self._log, **{name: value for name, value in given.items() if value is not None})
        asked = None if control.two_phase is None else (control.two_phase, control.two_phase_observe)
        self._apply_two_phase(self._two_phase if asked is None else asked)
        if chosen == self._applied:
            return
        set_log_level(chosen.level)
        delivery_lines.choose(chosen.ack_sample, chosen.ack_users, chosen.ack_conversations)
        if self._applied is not None:
            log.info(
                "log_settings",
                log_level=chosen.level,
                ack_sample=chosen.ack_sample,
                ack_users=chosen.ack_users,
                ack_conversations=chosen.ack_conversations,
            )
        self._applied = chosen

    def _apply_two_phase(self, state: TwoPhaseState) -> None:
        if self._switch is not None and state != self._switched:
            self._switched = share, observe = state
            self._switch(share, observe)
            log.info("two_phase_switched", share=share, observe=observe)


def _state_of(config: Config) -> TwoPhaseState:
    settings = config.two_phase
    return settings.share if settings.enabled or settings.observe else 0.0, settings.observe
