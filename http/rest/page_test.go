package rest

import (
	"encoding/base64"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// A cursor is read in the one spelling in which it is written, and never holds
// what a database refuses (D-GEN-11, SEC-27).
func TestCursor(t *testing.T) {
	type mark struct {
		At time.Time
		N  int64
		S  string
	}
	const time1 = `{"At":"2026-01-02T03:04:05.006Z"`
	for text, want := range map[string]bool{
		time1 + `,"N":17,"S":"a"}`: true, time1 + `,"N":-1,"S":"ş"}`: true, time1 + `,"N":0,"S":"a b:c"}`: true,
		time1 + `,"N":17,"S":""}`: true, time1 + `,"N":17,"S":"a\u0000"}`: false, time1 + `,"N":17,"S":"\u0000"}`: false,
		time1 + ",\"N\":17,\"S\":\"a\x00\"}": false, time1 + ",\"N\":17,\"S\":\"\xff\"}": false,
		time1 + `,"N":17,"S":"a"} `: false, ` ` + time1 + `,"N":17,"S":"a"}`: false, time1 + `, "N":17,"S":"a"}`: false,
		time1 + `,"N":17,"S":"a","T":1}`: false, time1 + `,"N":17,"N":17,"S":"a"}`: false, time1 + `,"n":17,"S":"a"}`: false,
		time1 + `,"S":"a","N":17}`: false, time1 + `,"N":17}`: false, time1 + `,"N":+17,"S":"a"}`: false,
		time1 + `,"N":017,"S":"a"}`: false, time1 + `,"N":-0,"S":"a"}`: false, time1 + `,"N":1.0,"S":"a"}`: false,
		time1 + `,"N":"17","S":"a"}`: false, time1 + `,"N":99999999999999999999,"S":"a"}`: false,
		time1 + `,"N":17,"S":"\u0061"}`: false, `{"At":"2026-01-02T03:04:05.0060Z","N":17,"S":"a"}`: false,
		`{"At":1,"N":17,"S":"a"}`: false, `17`: false, `[]`: false, `null`: false, `{}`: false, ` `: false,
	} {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(text))
		got, err := markOf[mark](cursor)
		if (err == nil) != want {
			t.Errorf("%q was read as %+v, %v", text, got, err)
		}
		if again := cursorOf(got); want && again != cursor {
			t.Errorf("%q became %q", cursor, again)
		}
	}
	type number struct{ N int64 }
	const good = "eyJOIjoxN30" // {"N":17}
	storetest.Equal(t, storetest.Value(markOf[number](good))(t).N, 17)
	for _, sent := range []string{good + "=", good[:10] + "1", good[:4] + "\n" + good[4:], "!"} {
		if got, err := markOf[number](sent); err == nil {
			t.Errorf("%q was read as %+v", sent, got)
		}
	}
}
