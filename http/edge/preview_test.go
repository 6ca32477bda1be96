package edge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"castellan/http/edge"
)

// The displayed fields of a request have numbers as sent, no secrets and no files.
func TestAsked(t *testing.T) {
	c := edge.Captured{Params: map[string]string{"id": "7"}, Query: "a=b%20c&token=x",
		Body: json.RawMessage(`{"amount":0.10000000000000000001,"isPinned":true,"pin":1,"newPassword":"x",` +
			`"deep":[{"secretKey":1,"ok":"y"}],"file":"` + strings.Repeat("ü", 1001) + `"}`)}
	got, err := c.Asked()
	want := `{"a":"b c","amount":0.10000000000000000001,"deep":[{"ok":"y"}],"file":"` + strings.Repeat("ü", 100) +
		` … (1001)","id":"7","isPinned":true}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if _, err := (edge.Captured{Body: json.RawMessage(`[`)}).Asked(); err == nil {
		t.Error("it reads what is no JSON")
	}
}
