package proofinfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

func readJob(job *Job) (tokens []int32, text string, stop StopReason, err error) {
	for piece, err := range job.All() {
		if err != nil {
			return tokens, text, stop, err
		}
		if piece.Token != NoToken {
			tokens = append(tokens, piece.Token)
		}
		text += piece.Text
		stop = piece.Stop
	}
	return tokens, text, stop, nil
}

// Sixteen goroutines with a scheduler for four: what each reads is what it gets alone.
func TestSchedulerGivesWhatEachGivesAlone(t *testing.T) {
	w := smallWorld(t)
	scheduler := must(w.model.NewScheduler(w.tokenizer, MaxGenerations(4), PrefillChunk(3)))(t)
	defer scheduler.Close()
	places := make(chan struct{}, 4)
	var group sync.WaitGroup
	for i := range 16 {
		options := []Option{MaxTokens(5 + i), Temperature(1), Seed(uint64(i)), StopTokens()}
		prompt := must(w.tokenizer.Encode(fmt.Sprintf("prompt %d", i*i), AddBOS))(t)
		generation := w.generate(t, fmt.Sprintf("prompt %d", i*i), options...)
		tokens, text := collect(t, generation)
		generation.Close()
		group.Add(1)
		go func() {
			defer group.Done()
			places <- struct{}{}
			defer func() { <-places }()
			job, err := scheduler.Submit(context.Background(), prompt, options...)
			if err != nil {
				t.Error(err)
				return
			}
			defer job.Close()
			gotTokens, gotText, stop, err := readJob(job)
			if err != nil || stop != StoppedLength || gotText != text || fmt.Sprint(gotTokens) != fmt.Sprint(tokens) {
				t.Errorf("%d: %v %q %v %v, alone %v %q", i, gotTokens, gotText, stop, err, tokens, text)
			}
		}()
	}
	group.Wait()
}

// Generations of the caller's own: of two clones of a session, one with a token banned.
func TestSchedulerGoesOnWithGenerations(t *testing.T) {
	w := smallWorld(t)
	scheduler := must(w.model.NewScheduler(w.tokenizer, MaxGenerations(2)))(t)
	defer scheduler.Close()
	ctx := context.Background()
	prompt := must(w.tokenizer.Encode("a prompt", AddBOS))(t)
	session := must(w.model.NewSession())(t)
	if err := session.Append(ctx, prompt, LastLogits); err != nil {
		t.Fatal(err)
	}
	banned := int32(-1)
	start := func() *Generation {
		clone := must(session.Clone())(t)
		sampler := must(NewSampler(w.model.VocabSize()))(t)
		if banned >= 0 {
			if err := sampler.SetBanned(banned); err != nil {
				t.Fatal(err)
			}
		}
		return must(clone.Generate(w.tokenizer, sampler, nil, MaxTokens(9), StopTokens()))(t)
	}
	for range 2 {
		tokens, text := collect(t, start())
		job := must(scheduler.Add(ctx, start()))(t)
		got, gotText, stop, err := readJob(job)
		if err != nil || stop != StoppedLength || gotText != text || fmt.Sprint(got) != fmt.Sprint(tokens) {
			t.Fatalf("%v %q %v %v, alone %v %q", got, gotText, stop, err, tokens, text)
		}
		if tokens[0] == banned {
			t.Fatalf("the banned token %d", banned)
		}
		banned = tokens[0]
	}
	closed := start()
	closed.Close()
	if _, err := scheduler.Add(ctx, closed); !errors.Is(err, ErrClosed) {
		t.Fatalf("a closed generation: %v", err)
	}
}

func TestSchedulerContextsAndClosing(t *testing.T) {
	w := smallWorld(t)
	scheduler := must(w.model.NewScheduler(w.tokenizer, MaxGenerations(3)))(t)
	endless := []Option{StopTokens(), ContextLength(200)}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	cause := errors.New("enough")
	job := must(scheduler.Submit(ctx, []int32{1}, endless...))(t)
	read := 0
	var err error
	for _, err = range job.All() {
		if read++; read == 5 {
			cancel(cause)
		}
	}
	if !errors.Is(err, ErrCancelled) || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Fatalf("a cancelled context: %v", err)
	}
	if err := job.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Submit(ctx, []int32{1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("a context that has ended: %v", err)
	}

	// One that nobody reads holds back itself only; closing gives its place back at once.
	idle := must(scheduler.Submit(context.Background(), []int32{1}, endless...))(t)
	other := must(scheduler.Submit(context.Background(), []int32{1}, MaxTokens(40), StopTokens()))(t)
	if tokens, _, stop, err := readJob(other); len(tokens) != 40 || stop != StoppedLength || err != nil {
		t.Fatalf("%d tokens, %v, %v", len(tokens), stop, err)
	}
	must(scheduler.Submit(context.Background(), []int32{1}, endless...))(t)
	must(scheduler.Submit(context.Background(), []int32{1}, endless...))(t)
	if _, err := scheduler.Submit(context.Background(), []int32{1}, endless...); !errors.Is(err, ErrLimit) {
		t.Fatalf("a full scheduler: %v", err)
	}
	idle.Close()
	idle.Close()
	last := must(scheduler.Submit(context.Background(), []int32{1}, endless...))(t)
	if _, err := scheduler.Submit(context.Background(), nil); err == nil {
		t.Fatal("an empty prompt was taken")
	}
	scheduler.Close()
	scheduler.Close()
	if _, _, _, err := readJob(last); !errors.Is(err, ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
	last.Close()
	if _, err := scheduler.Submit(context.Background(), []int32{1}); !errors.Is(err, ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
}
