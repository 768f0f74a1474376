"""Google's client of Cloud Translation v3, in a process of its own: its messages have the names of the server's.

Reads calls from standard input as JSON, makes them with the synchronous client and then with that for asyncio, and
prints what came of them.

usage: google_client.py ADDRESS [KEY]   (without a key: no TLS)
"""

import asyncio
import inspect
import json
import sys
from typing import Any

import grpc
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import translate_v3
from google.cloud.translate_v3.services.translation_service import transports

import dragoman.v1.translation_pb2  # noqa: F401  # a program may have the client of this server, too

MESSAGES = [
    translate_v3.TranslateTextRequest,
    translate_v3.TranslateTextResponse,
    translate_v3.Translation,
    translate_v3.TranslateTextGlossaryConfig,
    translate_v3.TransliterationConfig,
    translate_v3.DetectLanguageRequest,
    translate_v3.DetectLanguageResponse,
    translate_v3.DetectedLanguage,
    translate_v3.GetSupportedLanguagesRequest,
    translate_v3.SupportedLanguages,
    translate_v3.SupportedLanguage,
]


def clients(address: str, key: str | None) -> list[Any]:
    """Both clients, pointed at a server as their users do it; that for asyncio needs a running event loop."""
    if key is not None:
        options = ClientOptions(api_endpoint=address, api_key=key)
        return [
            translate_v3.TranslationServiceClient(client_options=options),
            translate_v3.TranslationServiceAsyncClient(client_options=options),
        ]
    plain = transports.TranslationServiceGrpcTransport(channel=grpc.insecure_channel(address))
    asynchronous = transports.TranslationServiceGrpcAsyncIOTransport(channel=grpc.aio.insecure_channel(address))
    return [
        translate_v3.TranslationServiceClient(transport=plain),
        translate_v3.TranslationServiceAsyncClient(transport=asynchronous),
    ]


async def result(client: Any, method: str, request: dict[str, Any]) -> dict[str, Any]:
    """What a call answers, or its error as the client raises it."""
    try:
        answer = getattr(client, method)(request=request)
        if inspect.isawaitable(answer):
            answer = await answer
    except GoogleAPICallError as error:
        return {"error": type(error).__name__, "reason": error.reason, "message": error.message}
    return type(answer).to_dict(answer)


def fields(message: Any) -> dict[str, list[Any]]:
    """Name, number, kind and type of each field."""
    return {
        field.name: [field.number, field.type, field.message_type and field.message_type.full_name]
        for field in message.pb().DESCRIPTOR.fields
    }


async def main() -> None:
    """Print the results of either client, and the fields of the messages."""
    address, key = sys.argv[1], (sys.argv[2:] or [None])[0]
    calls = json.load(sys.stdin)
    results = [[await result(client, *call) for call in calls] for client in clients(address, key)]
    described = {message.pb().DESCRIPTOR.full_name: fields(message) for message in MESSAGES}
    print(json.dumps({"results": results, "messages": described}))


asyncio.run(main())
