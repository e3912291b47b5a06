"""x"""

from harness.chat import meet


async def test_a_message_is_acknowledged_and_pushed(server):
    async with meet(server, "ann", "ben") as (ann, ben):
        ack = await ann.say(ben, "hello")
        got = await ben.expect("SINGLE_CHAT")
        print(ack, got)
        await ben.acknowledge(got)
        print(await ann.expect("ACK", ackType="read"))
