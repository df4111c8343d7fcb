package proofinfer

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// talking is a small world with a session and a sampler.
type talking struct {
	world
	session *Session
	sampler *Sampler
}

func talkingWorld(t testing.TB) talking {
	t.Helper()
	w := smallWorld(t)
	session := must(w.model.NewSession())(t)
	t.Cleanup(func() { session.Close() })
	sampler := must(NewSampler(w.model.VocabSize()))(t)
	t.Cleanup(func() { sampler.Close() })
	return talking{w, session, sampler}
}

func TestMessagesBecomeWhatTheLibraryMakesOfThem(t *testing.T) {
	w := talkingWorld(t)
	if names := ChatTemplates(); !slices.Equal(names, []string{"llama2", "llama3", "chatml", "zephyr", "mistral"}) {
		t.Errorf("templates: %v", names)
	}
	if name := must(w.tokenizer.ChatTemplate())(t); name != "" {
		t.Errorf("a tokenizer.bin carries %q", name)
	}
	_, err := w.tokenizer.EncodeChat("", []Message{{User, "x"}}, true)
	expectCode(t, err, ErrUnsupported)
	messages := []Message{{System, "Be kind."}, {User, "Hello"}, {Assistant, "Hi"}, {User, "na\u00efve \U0001f600"}}
	expected := must(w.tokenizer.Encode("[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHello [/INST] Hi ", AddBOS))(t)
	expected = append(expected, w.tokenizer.EOS())
	expected = append(expected, must(w.tokenizer.Encode("[INST] na\u00efve \U0001f600 [/INST]", AddBOS))(t)...)
	if found := must(w.tokenizer.EncodeChat("llama2", messages, true))(t); !slices.Equal(found, expected) {
		t.Errorf("found %v, expected %v", found, expected)
	}
	if stops := must(w.tokenizer.ChatStopTokens("llama2"))(t); !slices.Equal(stops, []int32{w.tokenizer.EOS()}) {
		t.Errorf("stop tokens: %v", stops)
	}
	asked := must(w.tokenizer.Decode(must(w.tokenizer.EncodeChat("chatml", messages[1:2], true))(t)))(t)
	told := must(w.tokenizer.Decode(must(w.tokenizer.EncodeChat("chatml", messages[1:2], false))(t)))(t)
	if asked != told+"<|im_start|>assistant\n" {
		t.Errorf("%q and %q", asked, told)
	}
	many := slices.Repeat([]Message{{User, strings.Repeat("\U0001f600", 3)}}, 400)
	if found := must(w.tokenizer.EncodeChat("zephyr", many, false))(t); len(found) < 400*12 {
		t.Errorf("%d ids", len(found))
	}
}

func TestWrongMessagesAreNamed(t *testing.T) {
	w := talkingWorld(t)
	for _, c := range []struct {
		template string
		messages []Message
		says     string
	}{
		{"chatml", nil, "there are 0 messages"},
		{"chatml", []Message{{0, "x"}}, "message 0 has the role 0"},
		{"chatml", []Message{{User, "x"}, {System, "x"}}, "message 1 is a system message"},
		{"llama2", []Message{{User, "x"}, {User, "x"}}, "message 1 is the user's"},
		{"robots", []Message{{User, "x"}}, "'robots' is not known"},
	} {
		_, err := w.tokenizer.EncodeChat(c.template, c.messages, true)
		expectCode(t, err, ErrArgument)
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v does not say %q", err, c.says)
		}
	}
	session := must(w.model.NewSession(ContextLength(8)))(t)
	defer session.Close()
	_, err := session.Chat(w.tokenizer, w.sampler, "llama2", []Message{{User, strings.Repeat("x", 20)}})
	expectCode(t, err, ErrContext)
}

func TestAGrowingChatEvaluatesWhatIsNew(t *testing.T) {
	w := talkingWorld(t)
	fresh := must(w.model.NewSession())(t)
	defer fresh.Close()
	chat := func(session *Session, messages []Message) *Generation {
		return must(session.Chat(w.tokenizer, w.sampler, "llama2", messages, MaxTokens(5)))(t)
	}
	messages := []Message{{User, "Hello"}}
	answer := chat(w.session, messages)
	_, text := collect(t, answer)
	answer.Close()
	messages = append(messages, Message{Assistant, text}, Message{User, "More"})
	again := chat(w.session, messages)
	defer again.Close()
	if kept := must(w.session.Position())(t); kept < len(must(w.tokenizer.EncodeChat("llama2", messages[:1], true))(t)) {
		t.Errorf("%d tokens are kept", kept)
	}
	alone := chat(fresh, messages)
	defer alone.Close()
	tokens, _ := collect(t, again)
	if others, _ := collect(t, alone); !slices.Equal(tokens, others) {
		t.Errorf("%v and %v", tokens, others)
	}
	ended := chat(fresh, messages)
	defer ended.Close()
	if err := ended.Force(w.tokenizer.EOS()); err != nil {
		t.Fatal(err)
	}
	if piece := must(ended.Next(context.Background()))(t); piece.Stop != StoppedToken {
		t.Errorf("stop: %v", piece.Stop)
	}
}

// bits makes NaN equal to itself.
func scoreBits(values []float32) []uint32 {
	result := make([]uint32, len(values))
	for i, value := range values {
		if result[i] = math.Float32bits(value); value != value {
			result[i] = math.MaxUint32
		}
	}
	return result
}

func TestScoresAreThoseOfAppendingOneByOne(t *testing.T) {
	w, ctx := talkingWorld(t), context.Background()
	tokens := []int32{1}
	for i := int32(1); i < 100; i++ {
		tokens = append(tokens, 3+i*37%250)
	}
	plain := func(tokens []int32) []uint32 {
		session := must(w.model.NewSession())(t)
		defer session.Close()
		var values []float32
		for i, token := range tokens {
			value := float32(math.NaN())
			if i > 0 {
				value = must(LogProbsOf(must(session.Logits(i-1))(t), []int32{token}))(t)[0]
			}
			values = append(values, value)
			if err := session.Append(ctx, []int32{token}, LastLogits); err != nil {
				t.Fatal(err)
			}
		}
		return scoreBits(values)
	}
	parts := append(must(w.session.Score(ctx, tokens[:30]))(t), must(w.session.Score(ctx, tokens[30:]))(t)...)
	if !slices.Equal(scoreBits(parts), plain(tokens)) {
		t.Error("other bits in two parts")
	}
	texts := [][]int32{tokens[:7], {}, {1}, tokens}
	found := must(w.model.Score(ctx, texts))(t)
	for i, text := range texts {
		if !reflect.DeepEqual(scoreBits(found[i]), append([]uint32{}, plain(text)...)) {
			t.Errorf("other bits of text %d", i)
		}
	}
	if none := must(w.model.Score(ctx, nil))(t); len(none) != 0 {
		t.Errorf("scores of no text: %v", none)
	}
}

func TestScoringRefusesWhatIsWrongAndEndsWithItsContext(t *testing.T) {
	w := talkingWorld(t)
	_, err := w.session.Score(context.Background(), []int32{1, int32(w.model.VocabSize())})
	expectCode(t, err, ErrArgument)
	_, err = w.model.Score(context.Background(), [][]int32{{1}, make([]int32, w.model.Info().SeqLen+1)})
	expectCode(t, err, ErrContext)
	ended, stop := context.WithCancel(context.Background())
	stop()
	_, err = w.model.Score(ended, [][]int32{{1, 2}})
	expectCode(t, err, ErrCancelled)
	_, err = w.session.Score(ended, []int32{1, 2})
	expectCode(t, err, ErrCancelled)
	if position := must(w.session.Position())(t); position != 0 {
		t.Errorf("position %d", position)
	}
}

func TestPerplexityIsOfWhatWasScored(t *testing.T) {
	if found := Perplexity([]float32{float32(math.NaN()), -1, -3}); math.Abs(found-math.Exp(2)) > 1e-12 {
		t.Errorf("perplexity %v", found)
	}
	if !math.IsNaN(Perplexity(nil)) {
		t.Error("the perplexity of nothing is a number")
	}
}
