"""Reading calls of the page, and answers to them. Every error becomes one sentence."""

import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request as Call
from starlette.responses import Response
from starlette.routing import Route

from lgf.errors import LgfError
from lgf.runs.serialisation import for_page

MOST_JSON = 1_000_000  # bytes of a call

Handler = Callable[[Call], Awaitable[Response]]


class TooLarge(LgfError):
    """A call with more bytes than allowed."""


def route(path: str, methods: tuple[str, ...], handler: Handler) -> Route:
    """The route of a call; an error of its handler becomes a sentence."""

    async def answer(call: Call) -> Response:
        try:
            return await handler(call)
        except TooLarge as error:
            return refusal(413, str(error))
        except LgfError as error:
            return refusal(422, str(error).splitlines()[0])
        except OSError as error:
            return refusal(500, f"A file cannot be used: {error.strerror or error}.")
        except Exception:  # noqa: BLE001  a bug: the terminal gets the traceback, the page a sentence
            traceback.print_exc(file=sys.stderr)
            return refusal(500, "This is a bug of lgf; the terminal shows what to report.")

    return Route(path, answer, methods=list(methods))


async def read_json(call: Call) -> dict[str, Any]:
    """The object in the body of a call."""
    body = bytearray()
    async for piece in call.stream():
        body += piece
        if len(body) > MOST_JSON:
            raise TooLarge(f"The call has more than {MOST_JSON:,} bytes; ask for less.")
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise LgfError("The call is not JSON.") from error
    if not isinstance(value, dict):
        raise LgfError("The call is not a JSON object.")
    return value


def whole_number(text: str | None) -> int:
    """The number in a query; 0 for anything else."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 9:
        return 0
    return int(text)


def facts_answer(facts: Any, status: int = 200) -> Response:
    """The facts as JSON."""
    return Response(for_page(facts), status, media_type="application/json")


def refusal(status: int, sentence: str) -> Response:
    """An answer that says in one sentence why there is no other."""
    return facts_answer({"error": sentence}, status)


def attachment(content: bytes, name: str, kind: str) -> Response:
    """A file that the browser stores under this name."""
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, media_type=kind, headers={"Content-Disposition": disposition})
