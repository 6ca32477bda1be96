package mail

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"
	"unicode"

	"castellan/domain/delivery/message"
)

// stage is how far a message got.
type stage string

const (
	connecting     stage = "connect"
	authenticating stage = "authenticate"
	naming         stage = "sender"
	addressing     stage = "recipient"
	announcing     stage = "data"
	transferring   stage = "content"
)

// failure is the reason why a message was stopped: a reply of the server (code) or a lost connection (cause).
type failure struct {
	stage stage
	code  int    // 0: no reply
	text  string // of the reply, safe to show
	cause error
	gone  bool // the connection ended after the reply
}

func (f *failure) Error() string {
	switch {
	case f.code == 0:
		return fmt.Sprintf("%s: %v", f.stage, f.cause)
	case f.text == "":
		return fmt.Sprintf("%s: server answered %d", f.stage, f.code)
	default:
		return fmt.Sprintf("%s: server answered %d %s", f.stage, f.code, f.text)
	}
}

func (f *failure) Unwrap() error { return f.cause }

var enhancedCode = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// maxReplyRunes limits a server's text in our errors.
const maxReplyRunes = 160

// failed describes err at a stage. The text of a reply is kept only from stages at which the server has neither
// password, recipient nor content: servers quote what they refuse. At other stages only the enhanced status code is
// kept.
func failed(at stage, err error) *failure {
	reply, is := errors.AsType[*textproto.Error](err)
	if !is {
		return &failure{stage: at, cause: err}
	}
	f := &failure{stage: at, code: reply.Code, text: enhancedCode.FindString(reply.Msg)}
	if at == connecting || at == naming {
		words := []rune(strings.Join(strings.FieldsFunc(reply.Msg, func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsPrint(r)
		}), " "))
		f.text = string(words[:min(len(words), maxReplyRunes)])
	}
	return f
}

// permanent reports whether a reply refuses this message for ever. A refusal while connecting concerns the server or
// its configuration, which an operator may correct before the message expires. So do requests for authentication, and
// 552 is a full mailbox (RFC 5321, section 4.5.3.1.10).
func (f *failure) permanent() bool {
	if f.stage == connecting || f.stage == authenticating {
		return false
	}
	switch f.code {
	case 530, 534, 535, 538, 552:
		return false
	}
	return f.code/100 == 5
}

// lost reports whether the connection is unusable.
func (f *failure) lost() bool {
	return f.gone || f.code == 0 || f.code == 421 || f.stage == connecting || f.stage == authenticating
}

// deliveryError converts err for the caller.
func deliveryError(ctx context.Context, err error) error {
	out := &message.DeliveryError{Unsent: true}
	if f, is := errors.AsType[*failure](err); is {
		// If no reply followed the content, the server may have accepted it.
		out.Unsent = f.stage != transferring || f.code != 0
		out.Permanent = f.permanent()
		// A cancelled or late call closes the connection during the conversation; the resulting error is meaningless.
		if f.code == 0 && ctx.Err() != nil {
			err = fmt.Errorf("%s: %w", f.stage, ctx.Err())
		}
	}
	out.Err = fmt.Errorf("mail: %w", err)
	return out
}
