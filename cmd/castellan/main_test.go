package main

import (
	"encoding/json"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Main(m, main) }

// admin logs the seeded administrator in and returns the header of its token.
func admin(t *testing.T, s *blackbox.Site, n *blackbox.Node) blackbox.Headers {
	t.Helper()
	token, _ := n.Session(t, s.Seeded("admin"))
	return blackbox.Headers{"x-auth": token}
}

// twoMethods makes LOGIN ask for SMS and MAIL both.
func twoMethods(t *testing.T, n *blackbox.Node, who blackbox.Headers) {
	t.Helper()
	n.Ok(t, "POST", "/admin/system/mfa/policies/common",
		`{"actionCode":"LOGIN","name":"both","expireAt":0,"required":2,"methods":[["SMS"],["MAIL"]]}`, who).Keys(t, "id")
}

// tune changes a method's times; later challenges have them.
func tune(t *testing.T, n *blackbox.Node, who blackbox.Headers, code string, expireMs, renewStartMs int) {
	t.Helper()
	n.Ok(t, "PATCH", "/admin/system/mfa/methods", map[string]any{"methodCode": code, "expireMs": expireMs, "renewStartMs": renewStartMs}, who)
}

// keys lists the keys of a JSON object.
func keys(t *testing.T, object []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return m
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
