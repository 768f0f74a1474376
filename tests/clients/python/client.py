import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from dragoman.v1 import translation_pb2, translation_pb2_grpc


def reason_of(error):
    info = error_details_pb2.ErrorInfo()
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(info)  # does nothing where it is another detail
    return info.reason


with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = translation_pb2_grpc.TranslationStub(channel)
    models = stub.ListModels(translation_pb2.ListModelsRequest(), timeout=60).models
    print(*(model.name for model in models))
    request = translation_pb2.TranslateTextRequest(contents=["Good morning."], model="en-de")
    for translation in stub.TranslateText(request, timeout=60).translations:
        print(translation.text_error.reason or translation.translated_text)
    try:
        request.model = "no-such-model"
        stub.TranslateText(request, timeout=60)
    except grpc.RpcError as error:
        print(error.code().name, reason_of(error))
