package mfa

import (
	"encoding/json"
	"errors"
	"strings"
)

// Choice is one method of a policy. On the wire it is a tuple, [code] or [code, template].
type Choice struct {
	Code     string
	Template string // "": the built-in message
}

// Tuple returns the choice in its normal form: no empty template.
func (ch Choice) Tuple() []string {
	if ch.Template == "" {
		return []string{ch.Code}
	}
	return []string{ch.Code, ch.Template}
}

func (ch Choice) MarshalJSON() ([]byte, error) { return json.Marshal(ch.Tuple()) }

var errTuples = errors.New("must be an array of [methodCode, templateName]")

// UnmarshalJSON reads a tuple; it ignores a template that is null or blank (D-MFA-04).
func (ch *Choice) UnmarshalJSON(data []byte) error {
	var tuple []*string
	if json.Unmarshal(data, &tuple) != nil || len(tuple) == 0 || len(tuple) > 2 || tuple[0] == nil {
		return errTuples
	}
	*ch = Choice{Code: *tuple[0]}
	if len(tuple) == 2 && tuple[1] != nil && strings.TrimSpace(*tuple[1]) != "" {
		ch.Template = *tuple[1]
	}
	return nil
}

// Choices are the methods of a policy in their wire form.
type Choices []Choice

// UnmarshalJSON reads an array of tuples.
func (cs *Choices) UnmarshalJSON(data []byte) error {
	var list []Choice
	if json.Unmarshal(data, &list) != nil || list == nil {
		return errTuples
	}
	*cs = list
	return nil
}
