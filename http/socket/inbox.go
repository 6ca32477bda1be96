package socket

import (
	"bytes"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

const (
	maxFrame  = 1 << 10 // bytes of a client's frame, or of a message made of several (D-SOCK-01)
	maxHeader = 14      // bytes of the longest frame header
)

// inbox reads the frames of a client by RFC 6455. The content of messages is ignored, because
// the service accepts none. Bytes come in as they arrive, in pieces of any size, and nothing
// is kept between two frames: an idle socket has an empty inbox.
type inbox struct {
	part    []byte // a frame that is not all here
	message []byte // a message that is not all here
	kind    ws.OpCode
	inside  bool // between the first and the last frame of a message
	broken  bool // a frame was wrong: the rest is not read
}

// take reads p, which it may change, and calls each for every complete and valid frame. It
// returns 0, or the close code for the client's error; after an error it reads nothing more.
func (in *inbox) take(p []byte, each func(op ws.OpCode, payload []byte)) closeCode {
	if in.broken {
		return 0
	}
	code := in.frames(p, each)
	if code != 0 {
		*in = inbox{broken: true}
	}
	return code
}

func (in *inbox) frames(p []byte, each func(op ws.OpCode, payload []byte)) closeCode {
	if len(in.part) > 0 {
		p = append(in.part, p...)
		in.part = nil
	}
	for len(p) > 0 {
		h, size, code := header(p)
		if code != 0 {
			return code
		}
		if size == 0 || len(p)-size < int(h.Length) { // the rest is on its way
			in.part = bytes.Clone(p)
			return 0
		}
		payload := p[size : size+int(h.Length)]
		p = p[size+int(h.Length):]
		ws.Cipher(payload, h.Mask, 0)
		if code := in.check(h, payload); code != 0 {
			return code
		}
		each(h.OpCode, payload)
	}
	return 0
}

// header reads and checks a frame's header before its payload arrives. The size is 0 while the
// header is incomplete.
func header(p []byte) (h ws.Header, size int, code closeCode) {
	r := bytes.NewReader(p)
	h, err := ws.ReadHeader(r)
	if err == ws.ErrHeaderLengthMSB {
		return h, 0, closeProtocol
	}
	if err != nil { // nothing else can go wrong in memory: it is cut off
		return h, 0, 0
	}
	switch {
	case !h.Masked, h.Rsv != 0, h.OpCode.IsReserved(), h.OpCode.IsControl() &&
		(!h.Fin || h.Length > ws.MaxControlFramePayloadSize):
		return h, 0, closeProtocol
	case h.Length > maxFrame:
		return h, 0, closeTooBig
	}
	return h, len(p) - r.Len(), 0
}

// check validates a frame in its context.
func (in *inbox) check(h ws.Header, payload []byte) closeCode {
	switch h.OpCode {
	case ws.OpClose:
		return checkClose(payload)
	case ws.OpPing, ws.OpPong:
		return 0
	case ws.OpContinuation:
		if !in.inside {
			return closeProtocol
		}
	default:
		if in.inside {
			return closeProtocol
		}
		in.inside, in.kind = true, h.OpCode
	}
	if len(in.message)+len(payload) > maxFrame {
		return closeTooBig
	}
	if !h.Fin {
		in.message = append(in.message, payload...)
		return 0
	}
	if len(in.message) > 0 {
		payload = append(in.message, payload...)
	}
	in.inside, in.message = false, nil
	if in.kind == ws.OpText && !utf8.Valid(payload) {
		return closeNotText
	}
	return 0
}

// checkClose validates the payload of a close frame: nothing, or a reason and a code that may
// be sent (RFC 6455, section 7.4, and the codes registered since).
func checkClose(payload []byte) closeCode {
	if len(payload) == 0 {
		return 0
	}
	if len(payload) == 1 {
		return closeProtocol
	}
	code, reason := ws.ParseCloseFrameData(payload)
	switch {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1014, code >= 3000 && code <= 4999:
	default:
		return closeProtocol
	}
	if !utf8.ValidString(reason) {
		return closeNotText
	}
	return 0
}
