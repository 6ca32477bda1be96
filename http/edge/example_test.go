package edge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/http/edge"
	"castellan/http/rest"
)

// Book is a section's group: its fields are the ports that it needs.
type Book struct{ names map[string]bool }

// Endpoints implements rest.Group: one line per endpoint.
func (g Book) Endpoints() []rest.Endpoint {
	const path = "/book"
	return []rest.Endpoint{
		rest.Post(path, "Add an entry", rest.User, g.add, fault.RecordAlreadyExist).Of("4.18 Address book"),
	}
}

// addRequest: a value is required, a pointer is optional.
type addRequest struct {
	Name string        `json:"name" maxLength:"32" doc:"Unique per user."`
	Max  *rest.Decimal `json:"max"`
}

type entry struct {
	Name string        `json:"name"`
	Max  *rest.Decimal `json:"max"`
}

func (g Book) add(_ context.Context, who rest.Caller, in addRequest) (rest.Data[entry], error) {
	if g.names[in.Name] {
		return rest.Data[entry]{}, &fault.Error{Code: fault.RecordAlreadyExist, Message: "the name is taken", Field: "name"}
	}
	g.names[in.Name] = true
	return rest.Data[entry]{Data: entry(in)}, nil
}

func Example() {
	book := Book{names: map[string]bool{}}
	srv, err := edge.New(edge.Options{
		Guards: map[rest.Credential]edge.Guard{
			rest.User: func(_ context.Context, r *edge.Request) (rest.Caller, error) {
				who := r.Caller
				if who.UserID = r.Header("x-auth"); who.UserID == "" {
					return who, fault.New(fault.Unauthenticated, "the header x-auth is missing")
				}
				return who, nil
			},
		},
		Authorize: func(context.Context, rest.Caller, *rest.Endpoint) error { return nil },
	}, book.Endpoints())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, body := range []string{`{"name":"cold","max":1e-7}`, `{"name":"cold"}`, `{"name":" ","max":"x"}`} {
		req := httptest.NewRequest("POST", "/book", strings.NewReader(body))
		req.Header.Set("x-auth", "u1")
		req.Header.Set("content-type", "application/json")
		resp, err := srv.App.Test(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, _ := io.ReadAll(resp.Body)
		shown := strings.ReplaceAll(string(text), resp.Header.Get("x-request-id"), "that of the answer")
		fmt.Println(resp.StatusCode, strings.ReplaceAll(shown, `,"`, ",\n  \""))
	}
	// Output:
	// 200 {"data":{"name":"cold",
	//   "max":0.0000001}}
	// 409 {"type":"urn:castellan:problem:record-already-exist",
	//   "title":"Record already exists",
	//   "status":409,
	//   "code":"RECORD_ALREADY_EXIST",
	//   "detail":"the name is taken",
	//   "message":"the name is taken",
	//   "field":"name",
	//   "errors":[{"field":"name",
	//   "message":"the name is taken"}],
	//   "requestId":"that of the answer"}
	// 400 {"type":"urn:castellan:problem:invalid-field",
	//   "title":"Invalid request",
	//   "status":400,
	//   "code":"INVALID_FIELD",
	//   "detail":"max: must be a decimal number",
	//   "message":"max: must be a decimal number",
	//   "field":"max",
	//   "errors":[{"field":"max",
	//   "message":"must be a decimal number"},{"field":"name",
	//   "message":"must not be blank"}],
	//   "requestId":"that of the answer"}
}

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
