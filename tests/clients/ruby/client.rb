require "grpc"
require "google/protobuf/well_known_types"
require "google/rpc/error_details_pb"
require "dragoman/v1/translation_services_pb"

include Dragoman::V1

def reason_of(error)
  packed = error.to_rpc_status.details.find { |detail| detail.is(Google::Rpc::ErrorInfo) }
  packed ? packed.unpack(Google::Rpc::ErrorInfo).reason : ""
end

stub = Translation::Stub.new(ARGV[0], :this_channel_is_insecure, timeout: 60)
puts stub.list_models(ListModelsRequest.new).models.map(&:name).join(" ")
request = TranslateTextRequest.new(contents: ["Good morning."], model: "en-de")
stub.translate_text(request, deadline: Time.now + 60).translations.each do |translation|
  puts translation.text_error ? translation.text_error.reason : translation.translated_text
end
begin
  stub.translate_text(TranslateTextRequest.new(contents: ["Good morning."], model: "no-such-model"))
rescue GRPC::BadStatus => error
  puts "#{error.class} #{reason_of(error)}"
end
