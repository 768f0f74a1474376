#include <chrono>
#include <iostream>

#include <grpcpp/grpcpp.h>

#include "dragoman/v1/translation.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

using namespace dragoman::v1;

std::string ReasonOf(const grpc::Status& failed) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  status.ParseFromString(failed.error_details());
  for (const auto& detail : status.details()) detail.UnpackTo(&info);  // does nothing where it is another detail
  return info.reason();
}

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

int main(int, char** arguments) {
  auto channel = grpc::CreateChannel(arguments[1], grpc::InsecureChannelCredentials());
  auto stub = Translation::NewStub(channel);

  grpc::ClientContext listing, translating, failing;
  for (auto* context : {&listing, &translating, &failing}) SetDeadline(context);

  ListModelsResponse list;
  stub->ListModels(&listing, ListModelsRequest(), &list);
  for (const auto& model : list.models()) std::cout << model.name() << std::endl;

  TranslateTextRequest request;
  TranslateTextResponse answer;
  request.add_contents("Good morning.");
  request.set_model("en-de");
  stub->TranslateText(&translating, request, &answer);
  for (const auto& translation : answer.translations())
    std::cout << (translation.has_text_error() ? translation.text_error().reason() : translation.translated_text())
              << std::endl;

  request.set_model("no-such-model");
  grpc::Status failed = stub->TranslateText(&failing, request, &answer);
  if (!failed.ok()) std::cout << failed.error_code() << " " << ReasonOf(failed) << std::endl;
}
