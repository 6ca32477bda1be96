package office

import (
	"encoding/json"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

const keysPath = "/admin/service-keys"

// With four eyes the new key of a service client is made when its requester fetches it. Of concurrent fetches one makes
// the key, which is kept nowhere, and the others get none (D-EXT-08).
func TestFourEyesShowSecretOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s, "MFA_FOUR_EYES=POST "+keysPath)
		d.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), d.Boss)
		id := d.Ask(t, "POST", keysPath, `{"name":"shop","actions":["PAYOUT"]}`, d.Boss)
		if got := d.Approve(t, id, d.Chief, d.Other); !got.Success || s.Count("service_key") != 0 {
			t.Fatalf("%+v, or the key exists before it is fetched", got)
		}
		var keys []string
		for _, a := range blackbox.Crowd(t, 40, func(int) (blackbox.Answer, error) {
			return d.Try("POST", blackbox.ApprovalsPath+"/"+id+"/fetch", nil, d.Boss)
		}) {
			var got struct {
				Data struct {
					Result struct{ Data struct{ Key string } }
				}
			}
			if json.Unmarshal(a.Body, &got) == nil && a.Status == 200 && got.Data.Result.Data.Key != "" {
				keys = append(keys, got.Data.Result.Data.Key)
			} else if a.Code() != "INVALID_STATE" {
				t.Errorf("got %s", a)
			}
		}
		if len(keys) != 1 || s.Count("service_key") != 1 {
			t.Fatalf("%d keys were shown", len(keys))
		}
		d.Do(t, "GET", "/guard/challenges/none", nil, blackbox.Headers{"service-auth": keys[0]}).Is(t, 404, "CODE")
		if hits := blackbox.Find(s.AtRest(), keys[0]); len(hits) > 0 || strings.Contains(d.Log(), keys[0]) {
			t.Errorf("the key lies open in %v", hits)
		}
	})
}
