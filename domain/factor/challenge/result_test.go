package challenge_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
)

func TestStoredFormOfAResult(t *testing.T) {
	for _, want := range []challenge.Result{
		{},
		{Success: true, Data: json.RawMessage(`{"sessionKey":"s"}`), Headers: map[string]string{"x-auth": "a.b.c"},
			UserID: "u", SessionID: "s", SV: 7},
		{Success: true, Headers: map[string]string{"ot-auth": "1", "x-auth": ""}, SV: -1},
		challenge.Failed(fault.New(fault.InvalidState, "ışık \x00")),
	} {
		data, err := want.AppendBinary([]byte{7})
		if err != nil || data[0] != 7 {
			t.Fatal("AppendBinary does not append", err)
		}
		var got challenge.Result
		if err := got.UnmarshalBinary(data[1:]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v became %+v: %v", want, got, err)
		}
		if err := got.UnmarshalBinary(append(data[1:], "of a later version"...)); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("with what a later version adds: %+v, %v", got, err)
		}
	}
	whole, _ := challenge.Result{Success: true, UserID: "u"}.AppendBinary(nil)
	kept := challenge.Result{UserID: "kept"}
	for what, data := range map[string][]byte{"nothing": nil, "torn": append(whole[:6:6], 200),
		"of another form": []byte(`{"success":true}`)} {
		if err := kept.UnmarshalBinary(data); err == nil || kept.UserID != "kept" {
			t.Errorf("%s: %+v, %v", what, kept, err)
		}
	}
}
