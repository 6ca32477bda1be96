package rest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"castellan/domain/kit/storetest"
)

// even reads itself from JSON.
type even int

func (e *even) UnmarshalJSON(b []byte) error {
	var list []int
	if json.Unmarshal(b, &list) == nil {
		*e = even(len(list))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil || len(s)%2 != 0 {
		return errors.New("odd")
	}
	*e = even(len(s))
	return nil
}

func TestSelfReading(t *testing.T) {
	type in struct {
		E even `json:"e"`
	}
	for _, c := range []struct {
		method, query, body string
		want                even
	}{
		{"POST", "", `{"e":"ab"}`, 2}, {"POST", "", `{"e":[1,2,3]}`, 3}, {"POST", "", `{"\u0065":"\u00e9"}`, 2},
		{"GET", "e=ab", "", 2}, {"GET", "e=[1,2,3]", "", 3}, {"GET", "e=", "", 0},
	} {
		got, err := bound[in](t, c.method, c.query, c.body)
		if err != nil || got.E != c.want {
			t.Errorf("%s ?%s %s = %d, %v", c.method, c.query, c.body, got.E, err)
		}
	}
	_, err := bound[in](t, "POST", "", `{"e":"abc"}`)
	storetest.Same(t, faults(t, err), []string{"e"}, "faulty")
}

func TestBindThenCall(t *testing.T) {
	e := Post("/x", "", NoAuth, echo)
	in, _, err := e.Bind(Query{}, []byte(`{"text":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Call(t.Context(), Caller{}, in)
	if err != nil || out.(Data[echoRequest]).Data.Text != "x" || e.Key() != "POST /x" {
		t.Errorf("%v, %v", out, err)
	}
}

func TestJSONValue(t *testing.T) {
	out, err := json.Marshal(struct{ A, B JSON }{JSON(`{"x":1}`), nil})
	if err != nil || string(out) != `{"A":{"x":1},"B":null}` {
		t.Errorf("%s, %v", out, err)
	}
	var back struct{ A JSON }
	if err := json.Unmarshal([]byte(`{"A":[1]}`), &back); err != nil || string(back.A) != `[1]` {
		t.Errorf("%s, %v", back.A, err)
	}
}

const benchBody = `{"currencyCode":"BTC","networkCode":"BTC",` +
	`"address":"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq","name":"cold"}`

type benchIn struct {
	Currency string `json:"currencyCode"`
	Network  string `json:"networkCode"`
	Address  string `json:"address"`
	Name     string `json:"name"`
}

// echoRequest is a request with a required and an optional field.
type echoRequest struct {
	Text string `json:"text"`
	N    *int   `json:"n"`
}

func echo(_ context.Context, _ Caller, in echoRequest) (Data[echoRequest], error) {
	return Data[echoRequest]{in}, nil
}
