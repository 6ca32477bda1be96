package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Sample is an executed example of an operation: what was sent, and the response.
type Sample struct {
	// Request is an object with the fields of the path, the query and the body; absent if nothing was sent.
	Request json.RawMessage `json:"request,omitempty"`
	Status  int             `json:"status,omitempty"` // 0: 200
	Answer  json.RawMessage `json:"answer"`
}

// example shows a sample in its operation: a value at each parameter that was sent, at the body, and at the response. A
// refusal is an example of the shared response, under the operation's id.
func (d *document) example(op *huma.Operation, e *Endpoint, s Sample) error {
	if s.Answer == nil {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if s.Request != nil {
		if err := json.Unmarshal(s.Request, &fields); err != nil {
			return fmt.Errorf("openapi: the example of %s: %w", op.OperationID, err)
		}
	}
	inParams := false
	for _, p := range op.Parameters {
		if value, sent := fields[p.Name]; sent && p.In != "header" {
			p.Example = queried(value, p.Schema)
			delete(fields, p.Name)
			inParams = true
		}
	}
	if body := op.RequestBody; body != nil && len(fields) > 0 {
		value := s.Request
		if inParams {
			value, _ = json.Marshal(fields) // it was read from JSON
		}
		body.Content[TypeJSON].Example = value
	}
	if s.Status == 0 {
		for _, media := range op.Responses["200"].Content {
			media.Example = s.Answer
		}
		return nil
	}
	name := strconv.Itoa(s.Status)
	if op.Responses[name] == nil {
		name = "default"
	}
	shared := d.Components.Responses[op.Responses[name].Ref[len(responsePrefix):]]
	media := shared.Content[TypeProblem]
	if media.Examples == nil {
		media.Examples = map[string]*huma.Example{}
	}
	media.Examples[op.OperationID] = &huma.Example{Summary: e.Key(), Value: s.Answer}
	return nil
}

// queried is a value of the query as its parameter reads it: 5 for "5" if it is a number.
func queried(value json.RawMessage, of *huma.Schema) any {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return value
	}
	switch {
	case of.Type == "array":
		return strings.Split(text, ",")
	case of.Type != "string" && of.Ref != schemaPrefix+"Id" && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return text
}
