package office

import (
	"encoding/json"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

const (
	keysPath   = "/admin/service-keys"
	rotatePath = keysPath + "/rotate"
)

// fetched is the answer of a fetch.
type fetched struct {
	Data struct {
		Status string
		Result struct{ Data struct{ Name, Key string } }
	}
}

// usable reports whether the service accepts the key of a client.
func usable(t *testing.T, d *blackbox.Counter, key string) bool {
	t.Helper()
	a := d.Do(t, "GET", "/guard/challenges/none", nil, blackbox.Headers{"service-auth": key})
	return a.Code() != "UNAUTHENTICATED"
}

// With four eyes the new key of a service client is made when its requester fetches it, and no other person or approval
// ever has it (D-EXT-08).
func TestFourEyesShowNoSecret(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s, "MFA_FOUR_EYES=POST "+keysPath+",POST "+rotatePath)
		d.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), d.Boss)
		fetch := func(id string, who blackbox.Headers, key string) blackbox.Answer {
			h := blackbox.Headers{"x-auth": who["x-auth"]}
			if key != "" {
				h["idempotency-key"] = key
			}
			return d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/fetch", nil, h)
		}
		ask := func(path, body string) string {
			id := d.Ask(t, "POST", path, body, d.Boss)
			fetch(id, d.Boss, "").Is(t, 409, "INVALID_STATE")
			if got := d.Approve(t, id, d.Chief, d.Other); !got.Success || got.Data.Status != "APPROVED" {
				t.Fatalf("%+v", got)
			}
			return id
		}
		id := ask(keysPath, `{"name":"shop","actions":["PAYOUT"]}`)
		if s.Count("service_key") != 0 || string(d.Read(t, id).Result) != "null" {
			t.Errorf("the key exists before it is fetched: %+v", d.Read(t, id))
		}
		fetch(id, d.Other, "").Is(t, 403, "FORBIDDEN")
		var first fetched
		a := fetch(id, d.Boss, "once").Is(t, 200, "")
		a.Read(t, &first)
		key := first.Data.Result.Data.Key
		again := fetch(id, d.Boss, "once").Is(t, 200, "").With(t, "idempotency-replayed", "true")
		if string(again.Body) != string(a.Body) || !usable(t, d, key) || s.Count("service_key") != 1 {
			t.Fatalf("%s, then %s", a, again)
		}
		fetch(id, d.Boss, "twice").Is(t, 409, "INVALID_STATE")
		fetch(id, d.Boss, "").Is(t, 409, "INVALID_STATE")
		for _, who := range []blackbox.Headers{d.Other, d.Boss} {
			for _, path := range []string{"", "/" + id, "?status=APPROVED"} {
				list := d.Ok(t, "GET", blackbox.ApprovalsPath+path, nil, who)
				if !strings.Contains(string(list.Body), `"name":"shop"`) || strings.Contains(string(list.Body), key) {
					t.Errorf("%s shows %s", path, list)
				}
			}
		}
		if hits := blackbox.Find(s.AtRest(), key); len(hits) > 0 || strings.Contains(d.Log(), key) {
			t.Errorf("the key lies open in %v", hits)
		}
		if s.Count("audit WHERE action = 'FOUR_EYES_FETCH' AND target = $1 AND actor_id = $2", id, d.Asker.ID) != 1 {
			t.Error("the audit does not say who fetched the key")
		}

		// A rotation has no effect before it is fetched.
		id = ask(rotatePath, `{"name":"shop"}`)
		if !usable(t, d, key) || s.Count("service_key WHERE rotated_at > 0") != 0 {
			t.Error("rotated before the fetch")
		}
		var next fetched
		fetch(id, d.Boss, "next").Is(t, 200, "").Read(t, &next)
		if made := next.Data.Result.Data.Key; made == key || !usable(t, d, made) || !usable(t, d, key) {
			t.Error("the rotated key and the previous one are not both accepted")
		}

		// Of concurrent fetches one makes the key, and the others get none.
		id = ask(keysPath, `{"name":"crowd","actions":["PAYOUT"]}`)
		made, before := 0, s.Count("service_key")
		for _, a := range blackbox.Crowd(t, 40, func(int) (blackbox.Answer, error) {
			return d.Try("POST", blackbox.ApprovalsPath+"/"+id+"/fetch", nil, d.Boss)
		}) {
			var got fetched
			if json.Unmarshal(a.Body, &got) == nil && a.Status == 200 && got.Data.Result.Data.Key != "" {
				made++
			} else if a.Code() != "INVALID_STATE" {
				t.Errorf("got %s", a)
			}
		}
		if made != 1 || s.Count("service_key") != before+1 {
			t.Errorf("%d keys were shown", made)
		}
	})
}
