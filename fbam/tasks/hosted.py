"""A hosted or local language model behind the chat-completions protocol, asked through the openai client.

Base URL and key come from the client's own environment variables, OPENAI_BASE_URL and OPENAI_API_KEY; the client repeats a request
that timed out, met 429 or a server error. Each reply is kept in a file named by the hash of its request, beside the prompt, so a
run that stopped asks only what is missing. What is no reply is a fault with a name. It is recorded and never counted as an answer.
"""

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import openai
from openai.types.chat import ChatCompletion

from fbam.experiments.files import canonical_json, read_json, write_json
from fbam.tasks.diff_inflate import BenchmarkError
from fbam.tasks.diff_outcomes import ANSWERED

Status = Literal["answered", "cut", "absent", "slow", "limited", "refused", "nonsense", "unsuitable"]
KEPT: tuple[Status, ...] = (ANSWERED, "cut")
"""What is not asked again: a reply, and a reply that the model's own limit of length cut off."""


class ModelError(BenchmarkError):
    """A model that cannot be asked at all."""


@dataclass(frozen=True)
class Reply:
    """What came back.

    :ivar status: "answered"; "cut" at the limit of length; "absent" or "slow" server; "limited" (429) or another error of HTTP,
        "refused"; "nonsense" that is no completion; "unsuitable" prompt, with bytes that are not UTF-8
    :ivar text: the reply, or what is known of the fault
    :ivar request: name of the file that keeps prompt and reply
    """

    status: Status
    text: str
    request: str


@dataclass
class ChatModel:
    """A model and where its replies are kept.

    :ivar timeout: seconds until a server counts as slow
    :ivar retries: how often the client asks again
    :ivar options: further fields of the request, such as {"reasoning_effort": "minimal"}

    :raises ModelError: there is no key
    """

    name: str
    folder: Path
    timeout: float = 120.0
    retries: int = 4
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            self._client = openai.OpenAI(timeout=self.timeout, max_retries=self.retries)
        except openai.OpenAIError as error:
            raise ModelError("set OPENAI_API_KEY to the key of the model's server, to any text for one that wants none") from error

    def ask(self, prompt: str) -> Reply:
        """Return the kept reply to a prompt, or ask for one."""
        request = {"model": self.name, "messages": [{"role": "user", "content": prompt}], **self.options}
        if not _is_utf8(prompt):
            return Reply("unsuitable", "the prompt holds bytes that are not UTF-8", "")
        address = str(self._client.base_url)
        name = hashlib.sha256(canonical_json([address, request]).encode()).hexdigest()[:20] + ".json"
        kept = self.folder / name
        if kept.exists():
            return Reply(**read_json(kept)["reply"])
        status, text = self._call(request)
        reply = Reply(status, text, name)
        if status in KEPT:
            write_json(kept, {"address": address, "request": request, "reply": asdict(reply)})
        return reply

    def _call(self, request: dict[str, Any]) -> tuple[Status, str]:
        try:
            return _read(self._client.chat.completions.create(**request))
        except openai.APITimeoutError:
            return "slow", f"no reply within {self.timeout:g} seconds"
        except openai.APIConnectionError as error:
            return "absent", f"no connection to {self._client.base_url}: {error.__cause__ or error}"
        except openai.RateLimitError as error:
            return "limited", str(error)
        except openai.APIStatusError as error:
            return "refused", str(error)
        except (openai.OpenAIError, ValueError) as error:  # the client lets the error of a broken JSON body through
            return "nonsense", f"no completion: {error}"


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _read(completion: object) -> tuple[Status, str]:
    """Status and text of what the client made of the server's answer, which need not be a completion."""
    choices = completion.choices if isinstance(completion, ChatCompletion) else None
    if not choices or not hasattr(choices[0], "message") or choices[0].message is None:
        return "nonsense", f"no completion: {str(completion)[:200]}"
    text = choices[0].message.content
    if choices[0].finish_reason == "length":
        return "cut", text if isinstance(text, str) else ""
    return (ANSWERED, text) if isinstance(text, str) and text else ("nonsense", "a completion without text")
