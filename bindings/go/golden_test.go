package proofinfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

type goldenCase struct {
	Name         string   `json:"name"`
	Shape        shape    `json:"shape"`
	Seed         *uint64  `json:"seed"`
	Tokens       []int32  `json:"tokens"`
	LogitsSHA256 string   `json:"logits_sha256"`
	LastLogits   []string `json:"last_logits_hex"`
	Greedy       []int32  `json:"greedy_from_1"`
	FileSHA256   string   `json:"file_sha256"`
	Sampled      []struct {
		Temperature float64 `json:"temperature"`
		TopP        float64 `json:"top_p"`
		Seed        uint64  `json:"seed"`
		IDs         []int32 `json:"ids"`
	} `json:"sampled"`
}

func goldenCases(t *testing.T) []goldenCase {
	var file struct {
		Cases []goldenCase `json:"cases"`
	}
	golden(t, "run_c_f32.json", &file)
	return file.Cases
}

// file is the checkpoint of a case; a synthetic one is checked before the engine is.
func (c goldenCase) file(t *testing.T) []byte {
	if c.Seed == nil {
		return must(os.ReadFile(filepath.Join(realModels(t), c.Name+".bin")))(t)
	}
	data := checkpoint(c.Shape, *c.Seed)
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != c.FileSHA256 {
		t.Fatalf("the checkpoint of %s is not the one of the figures", c.Name)
	}
	return data
}

func TestGoldenLogits(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			model := must(OpenModelBytes(context.Background(), c.file(t)))(t)
			defer model.Close()
			session := must(model.NewSession())(t)
			defer session.Close()
			if err := session.Append(context.Background(), c.Tokens, AllLogits); err != nil {
				t.Fatal(err)
			}
			digest := sha256.New()
			for position := range c.Tokens {
				logits := must(session.Logits(position))(t)
				for _, v := range logits {
					digest.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
				}
				err := session.ViewLogits(position, func(view []float32) error {
					if !slices.Equal(view, logits) {
						return fmt.Errorf("position %d: the view differs from the copy", position)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if sum := hex.EncodeToString(digest.Sum(nil)); sum != c.LogitsSHA256 {
				t.Errorf("logits: expected sha256 %s, found %s", c.LogitsSHA256, sum)
			}
			logits := must(session.Logits(len(c.Tokens) - 1))(t)
			for i, want := range c.LastLogits {
				if found := fmt.Sprintf("%08x", math.Float32bits(logits[i])); found != want {
					t.Errorf("logit %d: expected %s, found %s", i, want, found)
				}
			}
		})
	}
}

func TestGoldenGreedyAndSampled(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			w := openWorld(t, c.file(t), tokenizerFor(t, c))
			check := func(what string, want []int32, options ...Option) {
				found, err := idsFromBOS(w, len(want), options...)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if !slices.Equal(found, want) {
					t.Errorf("%s:\nexpected %v\nfound    %v", what, want, found)
				}
			}
			check("greedy", c.Greedy)
			for _, s := range c.Sampled {
				check(fmt.Sprintf("sampled %v", s), s.IDs, Temperature(s.Temperature), TopP(s.TopP), Seed(s.Seed))
			}
		})
	}
}

// idsFromBOS generates n ids after BOS; nothing ends the list earlier.
func idsFromBOS(w world, n int, options ...Option) ([]int32, error) {
	options = append(options, MaxTokens(n), StopTokens())
	session, err := w.model.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	sampler, err := NewSampler(w.model.VocabSize(), options...)
	if err != nil {
		return nil, err
	}
	defer sampler.Close()
	g, err := session.Generate(w.tokenizer, sampler, []int32{w.tokenizer.BOS()}, options...)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	var tokens []int32
	for piece, err := range g.All(context.Background()) {
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, piece.Token)
	}
	return tokens, nil
}

// tokenizerFor makes a vocabulary of the model's size; the pieces do not matter to the ids.
func tokenizerFor(t *testing.T, c goldenCase) []byte {
	if c.Seed == nil {
		return must(os.ReadFile(filepath.Join(realModels(t), "tok512.bin")))(t)
	}
	vocab := max(c.Shape.VocabSize, -c.Shape.VocabSize)
	file := binary.LittleEndian.AppendUint32(nil, 8)
	for i := range vocab {
		piece := fmt.Sprintf("p%d", i)
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(0))
		file = binary.LittleEndian.AppendUint32(file, uint32(len(piece)))
		file = append(file, piece...)
	}
	return file
}

func TestGoldenTokenizer(t *testing.T) {
	var file struct {
		Sets []struct {
			Tokenizer string `json:"tokenizer"`
			VocabSize int    `json:"vocab_size"`
			Cases     []struct {
				Text     *string `json:"text"`
				BytesHex string  `json:"bytes_hex"`
				IDs      []int32 `json:"ids"`
			} `json:"cases"`
		} `json:"sets"`
	}
	golden(t, "tokenizer.json", &file)
	for _, set := range file.Sets {
		t.Run(set.Tokenizer, func(t *testing.T) {
			tokenizer := must(OpenTokenizer(filepath.Join(realModels(t), set.Tokenizer), set.VocabSize))(t)
			defer tokenizer.Close()
			for _, c := range set.Cases {
				text := string(must(hex.DecodeString(c.BytesHex))(t))
				if c.Text != nil {
					text = *c.Text
				}
				if found := must(tokenizer.Encode(text, AddBOS))(t); !slices.Equal(found, c.IDs) {
					t.Errorf("%q: expected %v, found %v", text, c.IDs, found)
				}
			}
		})
	}
}

func TestGoldenSampler(t *testing.T) {
	var file struct {
		Cases []struct {
			LogitsHex   string  `json:"logits_hex"`
			Temperature float64 `json:"temperature"`
			TopP        float64 `json:"top_p"`
			Seed        uint64  `json:"seed"`
			IDs         []int32 `json:"ids"`
		} `json:"cases"`
	}
	golden(t, "sampler.json", &file)
	for i, c := range file.Cases {
		raw := must(hex.DecodeString(c.LogitsHex))(t)
		logits := make([]float32, len(raw)/4)
		if _, err := binary.Decode(raw, binary.BigEndian, logits); err != nil {
			t.Fatal(err)
		}
		sampler := must(NewSampler(len(logits), Temperature(c.Temperature), TopP(c.TopP), Seed(c.Seed)))(t)
		for draw, want := range c.IDs {
			if found := must(sampler.Sample(logits))(t); found != want {
				t.Fatalf("case %d, draw %d: expected %d, found %d", i, draw, want, found)
			}
		}
		sampler.Close()
	}
}

func TestGoldenTalk(t *testing.T) {
	path := os.Getenv("PROOFINFER_SMOLLM2")
	if path == "" {
		t.Skip("SKIPPED[smollm2]: PROOFINFER_SMOLLM2 names no file")
	}
	var talk struct {
		Turns []struct {
			User   string  `json:"user"`
			Prompt []int32 `json:"prompt"`
			Answer []int32 `json:"answer"`
			Text   string  `json:"text"`
		} `json:"turns"`
	}
	golden(t, "smollm2.json", &talk)
	model := must(OpenModel(context.Background(), path))(t)
	defer model.Close()
	tokenizer := must(OpenTokenizer(path, 0))(t)
	defer tokenizer.Close()
	session := must(model.NewSession(ContextLength(256)))(t)
	defer session.Close()
	sampler := must(NewSampler(model.VocabSize()))(t)
	defer sampler.Close()
	var messages []Message
	for _, turn := range talk.Turns {
		messages = append(messages, Message{User, turn.User})
		if prompt := must(tokenizer.EncodeChat("", messages, true))(t); !slices.Equal(prompt, turn.Prompt) {
			t.Errorf("prompt: expected %v, found %v", turn.Prompt, prompt)
		}
		generation := must(session.Chat(tokenizer, sampler, "", messages))(t)
		tokens, text := collect(t, generation)
		generation.Close()
		if !slices.Equal(tokens, turn.Answer) || text != turn.Text {
			t.Errorf("answer: expected %q %v, found %q %v", turn.Text, turn.Answer, text, tokens)
		}
		messages = append(messages, Message{Assistant, text})
	}
}
