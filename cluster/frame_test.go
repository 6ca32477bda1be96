package cluster

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"castellan/domain/kit/storetest"
)

var whole = frame{op: opCall, req: 300, kind: "challenge", id: "c-1", typ: "google.protobuf.StringValue",
	body: []byte("\n\x02hi"), code: codeBusy}

// The bytes that the first version of the program wrote. They must be read and written without change in every version.
const wholeBytes = "0000003a" + "0802" + "10ac02" + "1a096368616c6c656e6765" + "2203632d31" +
	"2a1b676f6f676c652e70726f746f6275662e537472696e6756616c7565" + "32040a026869" + "3802"

func TestFramesKeepTheirBytes(t *testing.T) {
	want := storetest.Value(hex.DecodeString(wholeBytes))(t)
	if got := whole.append(nil); !bytes.Equal(got, want) {
		t.Errorf("written %x, want %x", got, want)
	}
	got, _, err := readFrame(bytes.NewReader(want), nil)
	if err != nil || !reflect.DeepEqual(got, whole) {
		t.Errorf("read %+v, %v", got, err)
	}
	m, err := got.message()
	if err != nil || !proto.Equal(m, wrapperspb.String("hi")) {
		t.Errorf("carries %v, %v", m, err)
	}
}

// The second version added the trace as the last field. The first version skips it, and its frames have none.
func TestFramesCarryATrace(t *testing.T) {
	traced := whole
	traced.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	want, err := hex.DecodeString("00000073" + wholeBytes[8:] + "4237" + hex.EncodeToString([]byte(traced.trace)))
	storetest.Must(t, err)
	if got := traced.append(nil); !bytes.Equal(got, want) {
		t.Errorf("written %x, want %x", got, want)
	}
	if got, _, err := readFrame(bytes.NewReader(want), nil); err != nil || !reflect.DeepEqual(got, traced) {
		t.Errorf("read %+v, %v", got, err)
	}
	// The fields of the first version.
	known := map[protowire.Number]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}
	for rest := want[4:]; len(rest) > 0; {
		n, wire, size := protowire.ConsumeField(rest)
		if size < 0 || !known[n] && wire != protowire.BytesType {
			t.Fatalf("field %d of type %d: the first version would not skip it", n, wire)
		}
		rest = rest[size:]
	}
}

// A later version may add fields; this version skips them.
func TestFramesSkipFieldsOfLaterVersions(t *testing.T) {
	b := whole.append(nil)[4:]
	b = protowire.AppendVarint(protowire.AppendTag(b, 90, protowire.VarintType), 5)
	b = protowire.AppendString(protowire.AppendTag(b, 91, protowire.BytesType), "later")
	b = protowire.AppendFixed64(protowire.AppendTag(b, 92, protowire.Fixed64Type), 7)
	if got, err := parseFrame(b); err != nil || !reflect.DeepEqual(got, whole) {
		t.Errorf("%+v, %v", got, err)
	}
	unknown := frame{typ: "castellan.later.Message"}
	if _, err := unknown.message(); err == nil {
		t.Error("an unknown type was read")
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(whole.append(nil))
	traced := whole
	traced.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f.Add(traced.append(nil))
	f.Add([]byte{0, 0, 0, 2, 8, 2})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _, err := readFrame(bytes.NewReader(b), nil)
		if err != nil {
			return
		}
		got.message()
		again, _, err := readFrame(bytes.NewReader(got.append(nil)), nil)
		if err != nil || !reflect.DeepEqual(again, got) && len(got.body) > 0 {
			t.Errorf("%+v became %+v, %v", got, again, err)
		}
	})
}
