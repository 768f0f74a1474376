const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const protobuf = require("protobufjs");

// What a failed call carries in its trailing metadata, of google/rpc/status.proto and google/rpc/error_details.proto.
const details = protobuf.parse(`
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }`).root;

function reasonOf(error) {
  const [packed] = error.metadata.get("grpc-status-details-bin");
  const status = packed ? details.lookupType("Status").decode(packed) : { details: [] };
  const info = status.details.find((detail) => detail.typeUrl.endsWith("/google.rpc.ErrorInfo"));
  return info ? details.lookupType("ErrorInfo").decode(info.value).reason : "";
}

const definition = loader.loadSync("dragoman/v1/translation.proto", { includeDirs: [process.env.PROTO], enums: String });
const { Translation } = grpc.loadPackageDefinition(definition).dragoman.v1;
const client = new Translation(process.argv[2], grpc.credentials.createInsecure());

function call(method, request) {
  const options = { deadline: Date.now() + 60_000 };
  return new Promise((resolve, reject) =>
    client[method](request, options, (error, answer) => (error ? reject(error) : resolve(answer))),
  );
}

async function main() {
  const { models } = await call("listModels", {});
  console.log(models.map((model) => model.name).join(" "));
  const { translations } = await call("translateText", { contents: ["Good morning."], model: "en-de" });
  for (const { textError, translatedText } of translations) console.log(textError ? textError.reason : translatedText);
  try {
    await call("translateText", { contents: ["Good morning."], model: "no-such-model" });
  } catch (error) {
    console.log(grpc.status[error.code], reasonOf(error));
  }
  client.close();
}

main();
