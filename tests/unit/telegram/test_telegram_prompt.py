"""The question for a reason is known again, and nothing else passes for it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from telegram import Chat, MessageEntity, User
from telegram import Message as Received

from adapters.channels.telegram.prompt import asked_about, why_message
from adapters.channels.telegram.render import notice_message, reply_message
from core.model.notice import Notice, NoticeKind

ME = User(7_100_000_001, "Sayso", is_bot=True)
ANN = User(5_000_000_001, "Ann", is_bot=False)
CHAT = Chat(-1_000_004_000_001, Chat.SUPERGROUP)
WHY = "Why do you deny 3f2b9c1d? Reply to this message with the reason."
BOLD = (MessageEntity(MessageEntity.BOLD, 0, 3),)


@dataclass
class Asked:
    text: str | None = WHY
    entities: tuple[MessageEntity, ...] = BOLD
    sender: User | None = ME

    def about(self, me: User | None = ME) -> str | None:
        asked = Received(1, None, CHAT, from_user=self.sender, text=self.text, entities=self.entities)
        reply = Received(2, None, CHAT, from_user=ANN, text="because", reply_to_message=asked)
        return asked_about(reply, me)


def test_the_question_is_known_again_from_what_is_sent(make_card) -> None:
    sent = why_message(make_card(), ANN.id)
    assert Asked(sent.text, sent.entities).about() == "3f2b9c1d"


@pytest.mark.parametrize(
    "text",
    [
        None,
        WHY + " ",
        WHY + "\n",
        WHY + WHY,
        "\n" + WHY,
        WHY.replace("3f2b9c1d", "3f2b9c1"),
        WHY.replace("3f2b9c1d", "3f2b9c1d5"),
        WHY.replace("3f2b9c1d", "3F2B9C1D"),
        WHY.replace("3f2b9c1d", "always ask"),
        WHY.replace("3f2b9c1d", "３f2b9c1d"),  # noqa: RUF001 - a digit of another script is the point
        WHY.replace(" do ", "\u00a0do "),
    ],
)
def test_another_text_is_no_question(text) -> None:
    assert Asked().about() == "3f2b9c1d"
    assert Asked(text).about() is None


@pytest.mark.parametrize(
    "entities",
    [
        (),
        (MessageEntity(MessageEntity.CODE, 0, 3),),
        (MessageEntity(MessageEntity.BOLD, 0, 4),),
        (MessageEntity(MessageEntity.BOLD, 1, 3),),
    ],
)
def test_the_same_text_that_does_not_begin_as_ours_is_no_question(entities) -> None:
    assert Asked(entities=entities).about() is None


@pytest.mark.parametrize("sender", [ANN, User(7_100_000_002, "Sayso", is_bot=True), None])
def test_the_question_of_somebody_else_is_none_of_ours(sender) -> None:
    assert Asked(sender=sender).about() is None


def test_while_the_bot_does_not_know_itself_nothing_is_its_question() -> None:
    assert Asked().about(None) is None


def test_a_message_that_replies_to_nothing_answers_no_question() -> None:
    assert asked_about(Received(2, None, CHAT, from_user=ANN, text=WHY, entities=BOLD), ME) is None


def test_words_of_others_in_an_answer_or_a_notice_are_no_question() -> None:
    for sent in (reply_message(WHY)[0], notice_message(Notice(NoticeKind.SECURITY, WHY))):
        assert Asked(sent.text, sent.entities).about() is None
