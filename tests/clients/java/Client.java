import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import dragoman.v1.ListModelsRequest;
import dragoman.v1.TranslateTextRequest;
import dragoman.v1.TranslatedText;
import dragoman.v1.TranslationGrpc;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.concurrent.TimeUnit;

public class Client {
  static String reasonOf(StatusRuntimeException error) throws InvalidProtocolBufferException {
    for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
      if (detail.is(ErrorInfo.class)) return detail.unpack(ErrorInfo.class).getReason();
    }
    return "";
  }

  public static void main(String[] arguments) throws Exception {
    ManagedChannel channel = ManagedChannelBuilder.forTarget(arguments[0]).usePlaintext().build();
    // A deadline runs from here: give each call one of its own.
    TranslationGrpc.TranslationBlockingStub stub = TranslationGrpc.newBlockingStub(channel);
    stub.withDeadlineAfter(60, TimeUnit.SECONDS)
        .listModels(ListModelsRequest.getDefaultInstance())
        .getModelsList()
        .forEach(model -> System.out.println(model.getName()));
    TranslateTextRequest request =
        TranslateTextRequest.newBuilder().addContents("Good morning.").setModel("en-de").build();
    for (TranslatedText translation :
        stub.withDeadlineAfter(60, TimeUnit.SECONDS).translateText(request).getTranslationsList()) {
      System.out.println(
          translation.hasTextError()
              ? translation.getTextError().getReason()
              : translation.getTranslatedText());
    }
    try {
      stub.withDeadlineAfter(60, TimeUnit.SECONDS)
          .translateText(request.toBuilder().setModel("no-such-model").build());
    } catch (StatusRuntimeException error) {
      System.out.println(error.getStatus().getCode() + " " + reasonOf(error));
    }
    channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
  }
}
