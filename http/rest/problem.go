package rest

import (
	"encoding/json"
	"errors"
	"time"

	"castellan/domain/kit/fault"
)

// problem is the body of every refusal: RFC 9457 with the members of D-GEN-09. requestId stays
// last, because a replayed body gets the id of its new request.
type problem struct {
	Type         string         `json:"type"`
	Title        string         `json:"title"`
	Status       int            `json:"status"`
	Code         fault.Code     `json:"code"`
	Detail       string         `json:"detail"`
	Message      string         `json:"message"`
	Field        string         `json:"field,omitempty"`
	Errors       []problemField `json:"errors,omitempty"`
	AttemptsLeft *int           `json:"attemptsLeft,omitempty"`
	ResetAt      *Time          `json:"resetAt,omitempty"`
	RedeemedAt   *Time          `json:"redeemedAt,omitempty"`
	Data         any            `json:"data,omitempty"`
	RequestID    string         `json:"requestId"`
}

type problemField struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// The media types of answers.
const (
	TypeProblem = "application/problem+json"
	TypeJSON    = "application/json"
)

// FaultOf turns any error into one that a client may see. An error outside the
// registry is internal: its text stays on the server.
func FaultOf(err error) (f *fault.Error, internal bool) {
	if errors.As(err, &f) && f != nil {
		if _, known := registry[f.Code]; known && f.Code != fault.Internal {
			return f, false
		}
		err = nil // INTERNAL, whatever the error wraps
	}
	return fault.Unexpected(err), true
}

// Problem renders a fault. In English the message is the detail. In another
// language it is the detail translated, or the title of the code where no phrase fits.
func Problem(f *fault.Error, language, requestID string) (status int, body []byte) {
	e, ok := registry[f.Code]
	if !ok {
		e = registry[fault.Internal]
	}
	p := problem{Type: typeOf(f.Code), Title: e.en, Status: e.status, Code: f.Code, Detail: f.Message, Message: f.Message,
		Field: f.Field, AttemptsLeft: f.AttemptsLeft, Data: f.Record, RequestID: requestID}
	if !f.ResetAt.IsZero() {
		p.ResetAt = &Time{Time: f.ResetAt}
	}
	if !f.RedeemedAt.IsZero() {
		p.RedeemedAt = &Time{Time: f.RedeemedAt}
	}
	if p.Detail == "" {
		p.Detail, p.Message = e.en, e.en
	}
	for _, x := range f.Fields {
		p.Errors = append(p.Errors, problemField{x.Field, x.Message})
	}
	if language == "tr" || language == "ar" {
		p.localize(e, language)
	}
	if f.Field != "" && len(f.Fields) == 0 {
		p.Errors = []problemField{{f.Field, p.Detail}}
	}
	b, _ := json.Marshal(p) // strings and integers: cannot fail
	return e.status, b
}

// localize translates the details of the problem and of every field.
func (p *problem) localize(e entry, language string) {
	p.Message = e.title(language)
	for i, x := range p.Errors {
		said, ok := Translated(x.Message, language)
		if !ok {
			continue
		}
		p.Errors[i].Message = said
		if i == 0 {
			p.Message = x.Field + ": " + said
		}
	}
	if said, ok := Translated(p.Detail, language); ok && len(p.Errors) == 0 {
		p.Message = said
	}
}

// RetryAfter is the value of the header Retry-After in whole seconds, rounded up; 0
// for none.
func RetryAfter(f *fault.Error) int {
	if f.RetryAfter <= 0 && !registry[f.Code].retry {
		return 0
	}
	return max(1, int((f.RetryAfter+time.Second-1)/time.Second))
}
