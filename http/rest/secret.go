package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// OutcomeData is the path of the outcome of a challenge, which can hold secrets.
const OutcomeData = "execResult.data"

// Secret names the fields of the endpoint's answer that hold a secret, by their path: "data.key". A secret is shown to
// its requester only. An approval neither stores nor shows it (D-EXT-08), and the answer of an idempotency key with one
// is replayed for a shorter time (D-EXT-02).
func (e Endpoint) Secret(fields ...string) Endpoint { e.Secrets = fields; return e }

// WithoutSecrets returns an answer of the endpoint, which is JSON, without the fields that Secret names.
func (e *Endpoint) WithoutSecrets(answer json.RawMessage) (json.RawMessage, error) {
	if len(e.Secrets) == 0 {
		return answer, nil
	}
	var all any
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber() // an amount stays as it was written
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", e.Key(), err)
	}
	for _, field := range e.Secrets {
		without(all, strings.Split(field, "."))
	}
	return json.Marshal(all)
}

// without deletes the field at a path, in every element of a list on the way.
func without(value any, path []string) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			without(one, path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(value, path[0])
			return
		}
		without(value[path[0]], path[1:])
	}
}
