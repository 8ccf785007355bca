"""Under TLS, who may call: the coordinator and nobody else. One place for all calls, unary and streams."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc

from node_agent.tls.names import CA, CERTIFICATE, COORDINATOR, KEY, holder, pem

Context = grpc.aio.ServicerContext[Any, Any]


def credentials(folder: Path) -> grpc.ServerCredentials:
    """Of the identity in that folder. A caller must show a certificate of the same CA. Raises TlsError."""
    key, certificate, authority = (pem(folder, name) for name in (KEY, CERTIFICATE, CA))
    return grpc.ssl_server_credentials([(key, certificate)], root_certificates=authority, require_client_auth=True)


class OnlyCoordinator(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Refuses every call of anybody else."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """The method behind a guard. A kind of method that is not known here is not served."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return None
        read, write = handler.request_deserializer, handler.response_serializer
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(_guarded_stream(handler.unary_stream), read, write)
        return grpc.unary_unary_rpc_method_handler(_guarded(handler.unary_unary), read, write)


def _guarded(call: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    async def guarded(request: Any, context: Context) -> Any:
        await _check(context)
        return await call(request, context)

    return guarded


def _guarded_stream(
    call: Callable[[Any, Context], AsyncIterator[Any]],
) -> Callable[[Any, Context], AsyncIterator[Any]]:
    async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
        await _check(context)
        async for each in call(request, context):
            yield each

    return guarded


async def _check(context: Context) -> None:
    """Ends a call that is not the coordinator's."""
    names = [name.decode(errors="replace") for name in context.auth_context().get("x509_subject_alternative_name", ())]
    if names == [COORDINATOR]:
        return
    whose = holder(names[0]) if len(names) == 1 else "nobody"
    why = f"only the coordinator may call an agent, and this certificate is of {whose}: use certs/coordinator"
    await context.abort(grpc.StatusCode.PERMISSION_DENIED, why)
