package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Role says who speaks in a [Message].
type Role int32

const (
	System    Role = C.PROOFINFER_ROLE_SYSTEM
	User      Role = C.PROOFINFER_ROLE_USER
	Assistant Role = C.PROOFINFER_ROLE_ASSISTANT
)

// Message is what somebody says in a chat.
type Message struct {
	Role    Role
	Content string
}

// ChatTemplates lists the names of the chat templates that are known.
func ChatTemplates() []string {
	names := make([]string, C.proofinfer_chat_template_count())
	for i := range names {
		names[i] = C.GoString(C.proofinfer_chat_template_name(C.size_t(i)))
	}
	return names
}

// ChatTemplate is the name of the chat template that the tokenizer's file carries; "" if it has none, or none that is known.
func (t *Tokenizer) ChatTemplate() (string, error) {
	ptr, err := t.acquire()
	if err != nil {
		return "", err
	}
	defer t.h.release()
	return C.GoString(C.proofinfer_chat_template(ptr)), nil
}

// EncodeChat turns messages into token ids. What a message says stays text, whatever it spells. template is one of [ChatTemplates], or "" for
// the file's. With answer, what the assistant's next message begins with stands at the end, so that the ids are a prompt for it. [ErrArgument] for a
// list that the template has no form for, [ErrUnsupported] where the file has no template that is known.
func (t *Tokenizer) EncodeChat(template string, messages []Message, answer bool) ([]int32, error) {
	ptr, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer t.h.release()
	var contents strings.Builder
	roles, sizes := make([]int32, len(messages)), make([]C.size_t, len(messages))
	for i, message := range messages {
		roles[i], sizes[i] = int32(message.Role), C.size_t(len(message.Content))
		contents.WriteString(message.Content)
	}
	var flags C.uint32_t
	if answer {
		flags = C.PROOFINFER_CHAT_ANSWER
	}
	name, nameBytes := text(template)
	said, _ := text(contents.String())
	first, count := ids(roles)
	// A guess at first: an id a byte, and what stands around each message.
	for room := contents.Len() + 64*(len(messages)+1); ; {
		tokens := make([]int32, room)
		out, capacity := ids(tokens)
		var needed C.size_t
		var object *C.proofinfer_error
		status := C.proofinfer_chat_encode(ptr, name, nameBytes, first, said, unsafe.SliceData(sizes), count, flags, out, capacity, &needed, &object)
		err := failure(status, object)
		if err == nil {
			return tokens[:needed:needed], nil
		}
		if status != C.PROOFINFER_E_BUFFER {
			return nil, err
		}
		room = int(needed)
	}
}

// ChatStopTokens gives the ids that end the assistant's message.
func (t *Tokenizer) ChatStopTokens(template string) ([]int32, error) {
	ptr, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer t.h.release()
	tokens := make([]int32, 8)
	name, nameBytes := text(template)
	out, capacity := ids(tokens)
	var needed C.size_t
	var object *C.proofinfer_error
	if err := failure(C.proofinfer_chat_stop_tokens(ptr, name, nameBytes, out, capacity, &needed, &object), object); err != nil {
		return nil, err
	}
	return tokens[:needed:needed], nil
}

// Chat answers a list of messages: the generation's text is what the assistant says. What the session shares with the list is kept, so that a
// conversation that grows is evaluated where it is new only. template is one of [ChatTemplates], or "" for the file's. Scope of the options:
// generation; without [StopTokens] those of [Tokenizer.ChatStopTokens] end the answer.
func (s *Session) Chat(tokenizer *Tokenizer, sampler *Sampler, template string, messages []Message, options ...Option) (*Generation, error) {
	prompt, err := tokenizer.EncodeChat(template, messages, true)
	if err != nil {
		return nil, err
	}
	stops, err := tokenizer.ChatStopTokens(template)
	if err != nil {
		return nil, err
	}
	if len(prompt) > s.contextLength {
		return nil, &Error{Code: ErrContext, Message: fmt.Sprintf("the chat has %d tokens; the session has %d positions", len(prompt), s.contextLength)}
	}
	held, err := s.Tokens()
	if err != nil {
		return nil, err
	}
	common := 0
	for common < len(held) && common < len(prompt)-1 && held[common] == prompt[common] {
		common++
	}
	if err := s.Rewind(common); err != nil {
		return nil, err
	}
	return s.Generate(tokenizer, sampler, prompt[common:], append([]Option{StopTokens(stops...)}, options...)...)
}
