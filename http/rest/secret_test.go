package rest

import (
	"encoding/json"
	"testing"
)

// The declared secrets are removed, in every element of a list, and nothing else changes.
func TestWithoutSecrets(t *testing.T) {
	e := Endpoint{}.Secret("data.key", "token")
	for answer, want := range map[string]string{
		`{"data":{"key":"s","a":"b"},"token":"t","n":12345678901234567890}`: `{"data":{"a":"b"},"n":12345678901234567890}`,
		`{"data":[{"key":"s"},{"key":null,"n":1}]}`:                         `{"data":[{},{"n":1}]}`,
		`{"code":"FORBIDDEN"}`:                                              `{"code":"FORBIDDEN"}`,
		`{"data":"key"}`:                                                    `{"data":"key"}`,
	} {
		if got, err := e.WithoutSecrets(json.RawMessage(answer)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", answer, got, err)
		}
	}
	if got, err := e.WithoutSecrets(json.RawMessage("s3cret")); err == nil || got != nil {
		t.Errorf("an answer that is no JSON: %s", got)
	}
}
