"""A chat-completions server on 127.0.0.1 for tests: it answers what a function says, and fails as it is told to."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPEAT_AT_ONCE = ("retry-after-ms", "1")


class ChatServer(ThreadingHTTPServer):
    """``faults`` are served first, one a request; then ``answer(prompt)``. ``prompts`` are those of all requests so far."""

    daemon_threads = True

    def __init__(self, answer: Callable[[str], str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.faults, self.prompts, self.keys = answer, [], [], []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/chat/completions"
        prompt = request["messages"][0]["content"]
        self.server.prompts.append(prompt)
        self.server.keys.append(self.headers["Authorization"])
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == "slow":
            time.sleep(1.0)
        if isinstance(fault, int):
            self._send(fault, json.dumps({"error": {"message": f"fault {fault}"}}), [REPEAT_AT_ONCE])
        elif fault == "broken":
            self._send(200, '{"choices": [')
        elif fault == "page":
            self._send(200, "<html>gateway</html>", kind="text/html")
        elif fault == "list":
            self._send(200, "[]")
        else:
            self._send(200, json.dumps(completion(request["model"], self.server.answer(prompt), fault)))

    def _send(self, code: int, body: str, headers=(), kind: str = "application/json") -> None:
        self.send_response(code)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body.encode()))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body.encode())
        except BrokenPipeError:
            pass

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # a client that was tired of waiting
            pass

    def log_message(self, *arguments) -> None:
        pass


def completion(model: str, text: str, fault: str | None) -> dict:
    choice = {"index": 0, "finish_reason": "length" if fault == "cut" else "stop", "message": {"role": "assistant", "content": text}}
    choices = {"no choice": [], "no text": [choice | {"message": {"role": "assistant", "content": None}}], "no message": [{"index": 0}]}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": model, "choices": choices.get(fault, [choice])}


@contextmanager
def serving(answer: Callable[[str], str]) -> Iterator[ChatServer]:
    """A server in a thread of its own."""
    server = ChatServer(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
