package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// frame is what nodes send each other: four bytes of length, then these fields
// as a protobuf message. Fields are only added, so that the previous version
// of the program reads what this one writes; it skips what it does not know.
type frame struct {
	op   uint64 // 1
	req  uint64 // 2: which question this asks or answers
	kind string // 3: of the actor, or the name of a receiver
	id   string // 4: of the actor; of the node that says hello
	typ  string // 5: full name of the message in body
	body []byte // 6
	code uint64 // 7: of an answer
	// trace is the caller's place in a trace, as a W3C traceparent; the first
	// version of the program skips it.
	trace string // 8
}

// What a frame is. Numbers are never used again.
const (
	opHello    = 1 // the first frame of both ends: id is the sender, kind the receiver it is meant for
	opCall     = 2
	opTell     = 3
	opTellLive = 4
	opPost     = 5
	opRelease  = 6
	opPing     = 7  // req is the sender's clock
	opAnswer   = 8  // of a call, a release, a ping or a status
	opStatus   = 9  // answered with JSON, for operators
	opAsk      = 10 // of a named receiver; older nodes do not answer
)

// What an answer says.
const (
	codeOK        = 0
	codeElsewhere = 1 // look for the owner again
	codeBusy      = 2
	codeCrashed   = 3
	codeKind      = 4
	codeStranger  = 5 // of a ping: the asking node is not a member here
	codeLeft      = 6 // of a ping: the asking node leaves, and is asked for nothing any more
	codeJoining   = 7 // of a hello, not of an answer: the sender is joining
)

// maxFrame bounds what a peer may send in one piece.
const maxFrame = 4 << 20

var errFrame = errors.New("cluster: not a frame")

// append writes the frame behind b.
func (f *frame) append(b []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	number := func(n protowire.Number, v uint64) {
		if v != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
		}
	}
	text := func(n protowire.Number, s string) {
		if s != "" {
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
		}
	}
	number(1, f.op)
	number(2, f.req)
	text(3, f.kind)
	text(4, f.id)
	text(5, f.typ)
	if len(f.body) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, 6, protowire.BytesType), f.body)
	}
	number(7, f.code)
	text(8, f.trace)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// readFrame reads one frame. Body is a copy; the buffer may be used again.
func readFrame(r io.Reader, buf []byte) (f frame, _ []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, buf, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return f, buf, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return f, buf, err
	}
	f, err = parseFrame(buf)
	return f, buf, err
}

func parseFrame(b []byte) (f frame, err error) {
	for len(b) > 0 {
		n, wire, size := protowire.ConsumeTag(b)
		if size < 0 {
			return f, errFrame
		}
		b = b[size:]
		switch wire {
		case protowire.VarintType:
			v, size := protowire.ConsumeVarint(b)
			if size < 0 {
				return f, errFrame
			}
			b = b[size:]
			switch n {
			case 1:
				f.op = v
			case 2:
				f.req = v
			case 7:
				f.code = v
			}
		case protowire.BytesType:
			v, size := protowire.ConsumeBytes(b)
			if size < 0 {
				return f, errFrame
			}
			b = b[size:]
			switch n {
			case 3:
				f.kind = string(v)
			case 4:
				f.id = string(v)
			case 5:
				f.typ = string(v)
			case 6:
				f.body = append([]byte(nil), v...)
			case 8:
				f.trace = string(v)
			}
		default:
			size := protowire.ConsumeFieldValue(n, wire, b)
			if size < 0 {
				return f, errFrame
			}
			b = b[size:]
		}
	}
	return f, nil
}

// carry puts a message into the frame.
func (f *frame) carry(m proto.Message) (err error) {
	f.typ = string(m.ProtoReflect().Descriptor().FullName())
	f.body, err = proto.Marshal(m)
	return err
}

// message is the message that the frame carries. A type that this version of
// the program does not know is an error, and nothing else.
func (f *frame) message() (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(f.typ))
	if err != nil {
		return nil, fmt.Errorf("cluster: message of type %q: %w", f.typ, err)
	}
	m := t.New().Interface()
	return m, proto.Unmarshal(f.body, m)
}
