package proofinfer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"proofinfer.example/proofinfer"
)

// demo is where the model stands that the source tree carries.
func demo(name string) string {
	root := os.Getenv("PROOFINFER_SOURCE")
	if root == "" {
		root = filepath.Join("..", "..")
	}
	return filepath.Join(root, "reference", "demo", name)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open(ctx context.Context) (*proofinfer.Model, *proofinfer.Tokenizer) {
	model, err := proofinfer.OpenModel(ctx, demo("demo.bin"))
	check(err)
	tokenizer, err := proofinfer.OpenTokenizer(demo("demo_tokenizer.bin"), model.VocabSize())
	check(err)
	return model, tokenizer
}

func ExampleSession_Generate() {
	ctx := context.Background()
	model, tokenizer := open(ctx)
	defer model.Close()
	defer tokenizer.Close()

	session, err := model.NewSession(proofinfer.ContextLength(64))
	check(err)
	defer session.Close()
	sampler, err := proofinfer.NewSampler(model.VocabSize(), proofinfer.Temperature(0.8), proofinfer.Seed(42))
	check(err)
	defer sampler.Close()
	prompt, err := tokenizer.Encode("Once upon a time", proofinfer.AddBOS)
	check(err)

	generation, err := session.Generate(tokenizer, sampler, prompt, proofinfer.MaxTokens(16), proofinfer.StopTokens())
	check(err)
	defer generation.Close()
	story, tokens := "Once upon a time", 0
	for piece, err := range generation.All(ctx) {
		check(err)
		story += piece.Text
		tokens++
	}
	fmt.Println(len(story) > 16, tokens, "tokens, stopped by", generation.Stop())
	// Output: true 16 tokens, stopped by length
}

func ExampleTokenizer_Encode() {
	model, tokenizer := open(context.Background())
	defer model.Close()
	defer tokenizer.Close()

	tokens, err := tokenizer.Encode("Grüße, \U0001F999!", proofinfer.AddBOS)
	check(err)
	text, err := tokenizer.Decode(tokens)
	check(err)
	fmt.Println(tokens[0] == tokenizer.BOS(), text)
	// Output: true Grüße, 🦙!
}

func ExampleSession_Append() {
	ctx := context.Background()
	model, tokenizer := open(ctx)
	defer model.Close()
	defer tokenizer.Close()
	session, err := model.NewSession()
	check(err)
	defer session.Close()

	tokens, err := tokenizer.Encode("The dog", proofinfer.AddBOS)
	check(err)
	check(session.Append(ctx, tokens, proofinfer.LastLogits))
	logits, err := session.Logits(len(tokens) - 1)
	check(err)
	check(session.Rewind(1))
	position, err := session.Position()
	check(err)
	fmt.Println(len(logits) == model.VocabSize(), position)
	// Output: true 1
}

func ExampleSession_ViewLogits() {
	ctx := context.Background()
	model, tokenizer := open(ctx)
	defer model.Close()
	defer tokenizer.Close()
	session, err := model.NewSession()
	check(err)
	defer session.Close()
	sampler, err := proofinfer.NewSampler(model.VocabSize())
	check(err)
	defer sampler.Close()

	check(session.Append(ctx, []int32{tokenizer.BOS()}, proofinfer.LastLogits))
	err = session.ViewLogits(0, func(logits []float32) error {
		token, err := sampler.Sample(logits)
		fmt.Println(token >= 0)
		return err
	})
	check(err)
	// Output: true
}

func ExampleModel_NewBatch() {
	ctx := context.Background()
	model, tokenizer := open(ctx)
	defer model.Close()
	defer tokenizer.Close()
	batch, err := model.NewBatch(8)
	check(err)
	defer batch.Close()

	for _, text := range []string{"A cat", "A dog"} {
		session, err := model.NewSession()
		check(err)
		defer session.Close()
		tokens, err := tokenizer.Encode(text, proofinfer.AddBOS)
		check(err)
		for i, token := range tokens {
			check(batch.Add(session, token, i == len(tokens)-1))
		}
	}
	check(batch.Evaluate(ctx))
	// Output:
}

func ExampleError() {
	_, err := proofinfer.OpenModel(context.Background(), "missing.bin")
	var failure *proofinfer.Error
	fmt.Println(errors.Is(err, proofinfer.ErrIO), errors.As(err, &failure))
	fmt.Println(failure.Code.Name())
	_, err = os.Stat("missing.bin")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// true true
	// PROOFINFER_E_IO
	// true
}

func ExampleOpenModel_cancel() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := proofinfer.OpenModel(ctx, demo("demo.bin"))
	fmt.Println(errors.Is(err, context.Canceled), errors.Is(err, proofinfer.ErrCancelled))
	// Output: true true
}
