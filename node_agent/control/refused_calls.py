"""Calls that were refused: a line in the log for each kind now and then, and counts for the status.

Who called, by address and certificate, is told where it is known; what was sent is not.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from node_agent.host.log import WARNING, Log

MOST_CHARS = 300  # of a reason, or of the name of a method
REFUSED, UNAUTHORISED = "calls_refused", "calls_unauthorised"

Context = grpc.aio.ServicerContext[Any, Any]


class RefusedCalls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Sees every call; the outermost of the interceptors. counters: where they are counted."""

    def __init__(self, log: Log, counters: Counter[str]) -> None:
        self._log, self.counters = log, counters

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """The method, with an ear at its end."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method).rpartition("/")[2]
        if handler is None:
            self._note(REFUSED, method, "unimplemented", "there is no such call here", "somebody")
            return None
        read, write = handler.request_deserializer, handler.response_serializer
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(method, handler.unary_stream), read, write)
        return grpc.unary_unary_rpc_method_handler(self._unary(method, handler.unary_unary), read, write)

    def _unary(
        self, method: str, call: Callable[[Any, Context], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        async def heard(request: Any, context: Context) -> Any:
            try:
                reply = await call(request, context)
            except grpc.aio.AbortError:
                self._aborted(method, context)
                raise
            if not getattr(reply, "accepted", True):
                self._note(REFUSED, method, f"{method.lower()}_refused", reply.why, _who(context))
            return reply

        return heard

    def _stream(
        self, method: str, call: Callable[[Any, Context], AsyncIterator[Any]]
    ) -> Callable[[Any, Context], AsyncIterator[Any]]:
        async def heard(request: Any, context: Context) -> AsyncIterator[Any]:
            try:
                async for each in call(request, context):
                    yield each
            except grpc.aio.AbortError:
                self._aborted(method, context)
                raise

        return heard

    def _aborted(self, method: str, context: Context) -> None:
        code: Any = context.code()
        named = code.name.lower() if isinstance(code, grpc.StatusCode) else str(code)
        counter = UNAUTHORISED if code is grpc.StatusCode.PERMISSION_DENIED else REFUSED
        self._note(counter, method, named, str(context.details()), _who(context))

    def _note(self, counter: str, method: str, code: str, why: str, who: str) -> None:
        self.counters[counter] += 1
        text = f"{method[:MOST_CHARS]} of {who} was refused ({code}): {why[:MOST_CHARS]}"
        self._log.say("call_refused", text, WARNING, f"call_refused.{code}", code=code, who=who)


def _who(context: Context) -> str:
    """Address, and the names in the certificate."""
    names = [name.decode(errors="replace") for name in context.auth_context().get("x509_subject_alternative_name", ())]
    return " ".join([str(context.peer()), *names[:1]])[:MOST_CHARS]
