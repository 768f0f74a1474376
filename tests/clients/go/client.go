package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	pb "example.com/client/dragoman/v1"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.Reason
		}
	}
	return ""
}

func main() {
	connection, err := grpc.Dial(os.Args[1], grpc.WithInsecure())
	check(err)
	defer connection.Close()
	client := pb.NewTranslationClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	list, err := client.ListModels(ctx, &pb.ListModelsRequest{})
	check(err)
	for _, model := range list.Models {
		fmt.Println(model.Name)
	}
	request := &pb.TranslateTextRequest{Contents: []string{"Good morning."}, Model: "en-de"}
	answer, err := client.TranslateText(ctx, request)
	check(err)
	for _, translation := range answer.Translations {
		if translation.TextError != nil {
			fmt.Println(translation.TextError.Reason)
		} else {
			fmt.Println(translation.TranslatedText)
		}
	}
	request.Model = "no-such-model"
	if _, err = client.TranslateText(ctx, request); err != nil {
		fmt.Println(status.Code(err), reasonOf(err))
	}
}
