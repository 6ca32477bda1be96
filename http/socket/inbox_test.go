package socket

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// masked is a frame as a client sends it.
func masked(f ws.Frame) []byte {
	return ws.MustCompileFrame(ws.MaskFrameWith(f, [4]byte{1, 2, 3, 4}))
}

// part is one frame of a message of several.
func part(op ws.OpCode, fin bool, text string) []byte {
	return masked(ws.NewFrame(op, fin, []byte(text)))
}

func closing(code ws.StatusCode, reason string) []byte {
	return masked(ws.NewCloseFrame(ws.NewCloseFrameBody(code, reason)))
}

// head is a masked frame's header and nothing else.
func head(h ws.Header) []byte {
	var b bytes.Buffer
	h.Masked = true
	if err := ws.WriteHeader(&b, h); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

var inboxCases = map[string]struct {
	sent []byte
	got  string // of the frames that were taken
	code closeCode
}{
	"nothing":    {},
	"empty text": {sent: part(ws.OpText, true, ""), got: `1""`},
	"text and binary": {sent: join(part(ws.OpText, true, "a"), part(ws.OpBinary, true, "\xff")),
		got: `1"a" 2"\xff"`},
	"largest": {sent: part(ws.OpBinary, true, strings.Repeat("x", maxFrame)),
		got: "2" + fmt.Sprintf("%q", strings.Repeat("x", maxFrame))},
	"ping and pong": {sent: join(masked(ws.NewPingFrame([]byte("p"))), masked(ws.NewPongFrame(nil))),
		got: `9"p" 10""`},
	"parts": {sent: join(part(ws.OpText, false, "a"), part(ws.OpContinuation, false, "b"),
		part(ws.OpContinuation, true, "c")), got: `1"a" 0"b" 0"c"`},
	"ping between parts": {sent: join(part(ws.OpText, false, "a"), masked(ws.NewPingFrame(nil)),
		part(ws.OpContinuation, true, "c")), got: `1"a" 9"" 0"c"`},
	"letter over two parts": {sent: join(part(ws.OpText, false, "\xc4"), part(ws.OpContinuation, true, "\xb0")),
		got: `1"\xc4" 0"\xb0"`},
	"close":                   {sent: closing(1000, "bye"), got: `8"\x03\xe8bye"`},
	"close of nothing":        {sent: masked(ws.NewCloseFrame(nil)), got: `8""`},
	"close of an application": {sent: closing(4999, ""), got: `8"\x13\x87"`},
	"half a header":           {sent: part(ws.OpText, true, "")[:3]},
	"half a payload":          {sent: part(ws.OpText, true, "abc")[:8]},
	"one byte too big":        {sent: part(ws.OpBinary, true, strings.Repeat("x", maxFrame+1)), code: 1009},
	"64 MiB":                  {sent: head(ws.Header{Fin: true, OpCode: ws.OpText, Length: 64 << 20}), code: 1009},
	"longest length":          {sent: head(ws.Header{Fin: true, OpCode: ws.OpText, Length: 1<<63 - 1}), code: 1009},
	"negative length":         {sent: []byte{0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}, code: 1002},
	"parts too big": {sent: join(part(ws.OpText, false, strings.Repeat("x", 600)),
		part(ws.OpContinuation, true, strings.Repeat("x", 600))), got: "1" + fmt.Sprintf("%q", strings.Repeat("x", 600)),
		code: 1009},
	"unmasked": {sent: ws.MustCompileFrame(ws.NewTextFrame([]byte("a"))), code: 1002},
	"RSV1": {sent: head(ws.Header{Fin: true, Rsv: ws.Rsv(true, false, false), OpCode: ws.OpText}),
		code: 1002},
	"RSV3": {sent: head(ws.Header{Fin: true, Rsv: ws.Rsv(false, false, true), OpCode: ws.OpText}),
		code: 1002},
	"reserved kind":         {sent: head(ws.Header{Fin: true, OpCode: 0x3}), code: 1002},
	"reserved control kind": {sent: head(ws.Header{Fin: true, OpCode: 0xb}), code: 1002},
	"ping in parts":         {sent: head(ws.Header{OpCode: ws.OpPing}), code: 1002},
	"long ping":             {sent: head(ws.Header{Fin: true, OpCode: ws.OpPing, Length: 126}), code: 1002},
	"part of nothing":       {sent: part(ws.OpContinuation, true, "a"), code: 1002},
	"new message between": {sent: join(part(ws.OpText, false, "a"), part(ws.OpText, true, "b")), got: `1"a"`,
		code: 1002},
	"no text": {sent: part(ws.OpText, true, "\xff"), code: 1007},
	"half a letter": {sent: join(part(ws.OpText, false, "a"), part(ws.OpContinuation, true, "\xc4")),
		got: `1"a"`, code: 1007},
	"binary needs no letters": {sent: join(part(ws.OpBinary, false, "\xff"), part(ws.OpContinuation, true, "\xff")),
		got: `2"\xff" 0"\xff"`},
	"close with half a code":  {sent: masked(ws.NewCloseFrame([]byte{3})), code: 1002},
	"close 999":               {sent: closing(999, ""), code: 1002},
	"close 1004":              {sent: closing(1004, ""), code: 1002},
	"close 1005":              {sent: closing(1005, ""), code: 1002},
	"close 1006":              {sent: closing(1006, ""), code: 1002},
	"close 1012":              {sent: closing(1012, ""), got: `8"\x03\xf4"`},
	"close 1015":              {sent: closing(1015, ""), code: 1002},
	"close 2999":              {sent: closing(2999, ""), code: 1002},
	"close 5000":              {sent: closing(5000, ""), code: 1002},
	"close with no text":      {sent: closing(1000, "\xff"), code: 1007},
	"nothing after a mistake": {sent: join(part(ws.OpContinuation, true, ""), part(ws.OpText, true, "a")), code: 1002},
	"a mistake after the good": {sent: join(part(ws.OpText, true, "a"), part(ws.OpContinuation, true, "")), got: `1"a"`,
		code: 1002},
}

func TestInbox(t *testing.T) {
	for name, c := range inboxCases {
		for _, step := range []int{1, 2, 3, 7, 1000, 1 << 20} {
			if got, code := feed(t, c.sent, step); got != c.got || code != c.code {
				t.Errorf("%s, %d at a time: %s and %d, want %s and %d", name, step, got, code, c.got, c.code)
			}
		}
	}
}

// feed gives an inbox some bytes at a time.
func feed(t testing.TB, sent []byte, step int) (got string, code closeCode) {
	t.Helper()
	var in inbox
	var frames []string
	for p := range slices.Chunk(bytes.Clone(sent), step) {
		c := in.take(p, func(op ws.OpCode, payload []byte) { frames = append(frames, fmt.Sprintf("%d%q", op, payload)) })
		if len(in.part) >= maxHeader+maxFrame || len(in.message) > maxFrame {
			t.Fatalf("it keeps %d and %d bytes", len(in.part), len(in.message))
		}
		if code != 0 && c != 0 {
			t.Fatalf("a second mistake: %d after %d", c, code)
		}
		code = max(code, c)
	}
	return strings.Join(frames, " "), code
}

// The result of an inbox does not depend on how the bytes are split, and equals the result of
// the library's own reader and checks.
func FuzzInbox(f *testing.F) {
	for _, c := range inboxCases {
		f.Add(c.sent, uint16(3))
	}
	f.Fuzz(func(t *testing.T, sent []byte, step uint16) {
		whole, code := feed(t, sent, 1<<20)
		if cut, again := feed(t, sent, int(step)+1); cut != whole || again != code {
			t.Fatalf("cut: %s and %d; whole: %s and %d", cut, again, whole, code)
		}
		if want, wanted := reference(sent); want != whole || wanted != code {
			t.Fatalf("%s and %d; the library: %s and %d", whole, code, want, wanted)
		}
	})
}

// reference reads frames one by one, each in whole, with the library's checks.
func reference(sent []byte) (got string, code closeCode) {
	var frames []string
	var message []byte
	state, kind := ws.StateServerSide, ws.OpCode(0)
	finish := func(code closeCode) (string, closeCode) { return strings.Join(frames, " "), code }
	for r := bytes.NewReader(sent); ; {
		h, err := ws.ReadHeader(r)
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return finish(0)
		case err != nil:
			return finish(1002)
		}
		// The order of two mistakes in one frame is not the library's affair.
		alone := ws.StateServerSide
		if h.OpCode == ws.OpContinuation {
			alone = alone.Set(ws.StateFragmented)
		}
		if ws.CheckHeader(h, alone) != nil {
			return finish(1002)
		}
		if h.Length > maxFrame {
			return finish(1009)
		}
		payload := make([]byte, h.Length)
		if _, err := io.ReadFull(r, payload); err != nil {
			return finish(0)
		}
		if ws.CheckHeader(h, state) != nil {
			return finish(1002)
		}
		ws.Cipher(payload, h.Mask, 0)
		switch {
		case h.OpCode == ws.OpClose && h.Length > 0:
			if h.Length == 1 {
				return finish(1002)
			}
			code, reason := ws.ParseCloseFrameData(payload)
			registered := code >= 1012 && code <= 1014 // since the RFC
			if ws.CheckCloseFrameData(code, "") != nil && !registered || code > 4999 {
				return finish(1002)
			}
			if !utf8.ValidString(reason) {
				return finish(1007)
			}
		case h.OpCode.IsData():
			if h.OpCode != ws.OpContinuation {
				kind, message = h.OpCode, nil
			}
			if message = append(message, payload...); len(message) > maxFrame {
				return finish(1009)
			}
			if state = ws.StateServerSide; !h.Fin {
				state = state.Set(ws.StateFragmented)
			} else if kind == ws.OpText && !utf8.Valid(message) {
				return finish(1007)
			}
		}
		frames = append(frames, fmt.Sprintf("%d%q", h.OpCode, payload))
	}
}
