package office_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
)

var errDown = errors.New("the database is down")

// wantsInternal checks that a request is answered with an internal error, without its cause.
func (o *foureyesOffice) wantsInternal(line, body string) {
	o.t.Helper()
	status, answer := o.As("boss").Call(line, body)
	if status != 500 || strings.Contains(answer, "down") {
		o.t.Errorf("%s: %d %s", line, status, answer)
	}
}

// A request that cannot be opened is neither shown nor decided, because its content decides who may do that.
func TestUnreadableRequest(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	open := o.Open
	o.Open = func([]byte, []byte) ([]byte, error) { return nil, errDown }
	o.As("clerk").Wants("GET /"+id, "", 500, "INTERNAL")
	o.wantsInternal("POST /"+id+"/approve", "")
	o.wantsInternal("POST /"+id+"/refuse", `{"reason":"no"}`)
	if _, err := o.approve("boss", id); err == nil || o.get(id).Status != foureyes.Pending || len(o.commands) != 0 {
		t.Errorf("%v, %s, started: %v", err, o.get(id).Status, o.commands)
	}
	o.Open = func([]byte, []byte) ([]byte, error) { return []byte("{"), nil }
	storetest.Fails(t, storetest.Err(o.Asked(o.get(id))), "", "no error of a request that is no JSON")
	o.Open = open
	o.As("boss").Gets("POST /"+id+"/refuse", `{"reason":"no"}`, "200")
}

// If the changes of a request cannot be computed or written, the answer is an error and no part of the record.
func TestChangesCannotBeShown(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	o.before = func() {} // JSON has no functions
	o.wantsInternal("GET /"+id, "")
	o.hidden, o.refusal = true, errDown
	o.wantsInternal("GET /"+id, "")
	o.refusal = nil
	o.As("boss").Wants("GET /"+id, "", 200, "{"+pending(id)+"}")
}

// A refusal is shown in the language of the caller, and in English without a translation.
func TestTranslatedRefusal(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	for _, c := range []struct{ text, language, want string }{{"is required", "tr", "zorunludur"},
		{"is required", "en", "is required"}, {"a text that has no translation", "tr", "a text that has no translation"}} {
		o.refusal = fault.New(fault.InvalidState, "%s", c.text)
		status, answer := o.As("boss").Call("GET /"+id+"?_requesterLanguage="+c.language, "")
		if status != 200 || !strings.Contains(answer, `"refusal":"`+c.want+`"`) {
			t.Errorf("%+v: %d %s", c, status, answer)
		}
	}
}

// A result that is no JSON fails the approval: nothing is decided.
func TestResultThatIsNoJSON(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	o.Run = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage("{"), nil
	}
	storetest.Fails(t, storetest.Err(o.execute(id, "boss")), "")
	storetest.Equal(t, o.get(id).Status, foureyes.Pending)
}

// No challenge starts for a request whose content cannot be described to its approver.
func TestIndescribableRequest(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	o.vague = errDown
	o.wantsInternal("POST /"+id+"/approve", "")
	o.vague = nil
	opened, open := 0, o.Open
	o.Open = func(sealed, data []byte) ([]byte, error) {
		if opened++; opened > 1 {
			return nil, errDown
		}
		return open(sealed, data)
	}
	o.wantsInternal("POST /"+id+"/approve", "")
	if len(o.commands) != 0 || opened != 2 {
		t.Errorf("started: %v, opened %d times", o.commands, opened)
	}
}

// An approval whose record cannot be read back fails, and nothing is decided.
func TestApprovalCannotBeShown(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	open := o.Open
	o.Open = func(sealed, data []byte) ([]byte, error) {
		if string(data) == string(foureyes.ResultData(id)) {
			return nil, errDown
		}
		return open(sealed, data)
	}
	if got, err := o.execute(id, "boss"); !errors.Is(err, errDown) {
		t.Errorf("%+v, %v", got, err)
	}
	storetest.Equal(t, o.get(id).Status, foureyes.Pending)
}

// The record says until when the requester can fetch the response. Only the answer of that call has the secret, and a
// repeat with the same key gets it again.
func TestFetchSecret(t *testing.T) {
	o := newOffice(t)
	id := o.standAt("/keys")
	o.As("clerk").Wants("POST /"+id+"/fetch", "", 409, "INVALID_STATE")
	got, err := o.execute(id, "boss")
	storetest.Must(t, err)
	const until = `"result":null,"fetchUntil":"2023-11-15T22:13:21.000Z"`
	storetest.Contains(t, string(got.Data), until)
	for _, line := range []string{"GET /" + id, "GET ", "GET ?status=APPROVED"} {
		if _, answer := o.As("clerk").Call(line, ""); !strings.Contains(answer, until) {
			t.Errorf("%s: %s", line, answer)
		}
	}
	o.As("boss").Wants("POST /"+id+"/fetch", "", 403, "FORBIDDEN")
	o.refusal = fault.New(fault.RecordAlreadyExist, "the name is taken")
	o.As("clerk").Wants("POST /"+id+"/fetch", "", 409, "RECORD_ALREADY_EXIST")
	o.refusal = nil
	for range 2 {
		res, answer := o.As("clerk").Send("POST /"+id+"/fetch", "", "idempotency-key", "k")
		if res.StatusCode != 200 || !strings.Contains(answer, `"result":{"data":{"key":"s3cret of clerk"}}}}`) ||
			strings.Contains(answer, "fetchUntil") {
			t.Errorf("%d %s", res.StatusCode, answer)
		}
	}
	if len(o.fresh) != 1 || o.fresh[0] > time.Second || o.fresh[0] < time.Second/2 {
		t.Errorf("this node accepts the key at once: %v", o.fresh)
	}
	o.As("clerk").Wants("POST /"+id+"/fetch", "", 409, "INVALID_STATE")
	for _, line := range []string{"GET /" + id, "GET "} {
		if _, answer := o.As("clerk").Call(line, ""); !strings.Contains(answer, `"result":{"data":{}}}`) {
			t.Errorf("%s: %s", line, answer)
		}
	}

	other := o.standAt("/keys")
	storetest.Must(t, storetest.Err(o.execute(other, "boss")))
	if res, answer := o.As("clerk").Send("POST /"+other+"/fetch", "", "idempotency-key", "k"); res.StatusCode != 422 {
		t.Errorf("the key of another request: %d %s", res.StatusCode, answer)
	}
}
