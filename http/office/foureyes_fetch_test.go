package office_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// The record says until when the requester can fetch the response. Only the answer of that call has the secret, and a
// repeat with the same key gets it again.
func TestFetchSecret(t *testing.T) {
	o := newOffice(t)
	id := o.standAt("/keys")
	o.As("clerk").Wants("POST /"+id+"/fetch", "", 409, "INVALID_STATE")
	got, err := o.execute(id, "boss")
	storetest.Must(t, err)
	const until = `"result":null,"fetchUntil":"2023-11-15T22:13:21.000Z"`
	if !strings.Contains(string(got.Data), until) {
		t.Errorf("the approval says %s", got.Data)
	}
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
	o.As("clerk").Wants("POST /"+id+"/fetch", "", 409, "INVALID_STATE")
	for _, line := range []string{"GET /" + id, "GET "} {
		if _, answer := o.As("clerk").Call(line, ""); !strings.Contains(answer, `"result":{"data":{}}}`) {
			t.Errorf("%s: %s", line, answer)
		}
	}

	other := o.standAt("/keys")
	_, err = o.execute(other, "boss")
	storetest.Must(t, err)
	if res, answer := o.As("clerk").Send("POST /"+other+"/fetch", "", "idempotency-key", "k"); res.StatusCode != 422 {
		t.Errorf("the key of another request: %d %s", res.StatusCode, answer)
	}
}
