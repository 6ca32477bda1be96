package sms_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"castellan/domain/delivery/message"
	"castellan/outbound/sms"
)

// TestSignOfSuccess sends over a connection to gateways that answer 200 whatever happened. A refusal is final, is
// described by its shape, and shows neither the code nor the recipient that the gateway quotes.
func TestSignOfSuccess(t *testing.T) {
	netgsm := sms.Success{Pattern: `^0[0-2] [0-9]+$`}
	iletimerkezi := sms.Success{Field: "response.status.code", Values: []string{"200"}}
	list := sms.Success{Field: "messages.0.ok", Values: []string{"true", "queued"}}
	for _, c := range []struct {
		sign         sms.Success
		body, reason string // "" is success
	}{
		{netgsm, "00 123456789\r\n", ""},
		{netgsm, "\ufeff 02 7", ""},
		{netgsm, "30", "the body is 30"},
		{netgsm, "", "the body is empty"},
		{netgsm, "00", "the body is 00"},
		{netgsm, "012345", `a text of 6 characters like "999999"`},
		{netgsm, "20 kod 012345: +905321234567 için", `a text of 33 characters like "99 aaa 999999: +99999999..."`},
		{netgsm, strings.Repeat(" ", 64<<10) + "00 1", "the body is empty"}, // 64 KiB are read
		{iletimerkezi, `{"response":{"status":{"code":200,"message":"İşlem başarılı"},"order":{"id":"7"}}}`, ""},
		{iletimerkezi, `{"response":{"status":{"code":"200"}}}`, ""},
		{iletimerkezi, `{"response":{"status":{"code":451,"message":"012345"}}}`, "response.status.code is 451"},
		{iletimerkezi, `{"response":{"status":{"code":2000}}}`, `response.status.code is a text of 4 characters like "9999"`},
		{iletimerkezi, `{"response":{"status":[200]}}`, "response.status.code is missing"},
		{iletimerkezi, `{"response":{"status":{"code":null}}}`, "response.status.code is missing"},
		{iletimerkezi, `{"response":{"status":{"code":{"200":1}}}}`, "response.status.code is a list or an object"},
		{iletimerkezi, `{"response":"200"}`, "response.status.code is missing"},
		{iletimerkezi, `{"response":{"status":{"code":200}}} 012345`, "the body is not JSON but a text of 43 characters"},
		{iletimerkezi, "<html>012345", `the body is not JSON but a text of 12 characters like "<aaaa>999999"`},
		{list, `{"messages":[{"ok":true}]}`, ""},
		{list, `{"messages":[{"ok":"queued"}]}`, ""},
		{list, `{"messages":[{"ok":false},{"ok":true}]}`, `messages.0.ok is a text of 5 characters like "aaaaa"`},
		{list, `{"messages":[]}`, "messages.0.ok is missing"},
	} {
		g := newGateway(t, false)
		g.answers(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.body) })
		cfg := form(g.URL)
		cfg.Success = c.sign
		s := newSender(t, cfg)
		err := s.Send(t.Context(), key, text("012345"))
		if c.reason == "" {
			if err != nil {
				t.Errorf("%.60q: %v", c.body, err)
			}
			continue
		}
		checkFailure(t, err, true, "gateway answered 200 without the sign of success: ")
		checkFailure(t, err, true, c.reason)
		g.answers(func(w http.ResponseWriter, _ *http.Request) { // the status decides first
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "00 1")
		})
		checkFailure(t, s.Send(t.Context(), key, text("012345")), false, "gateway answered 503")
	}

	g := newGateway(t, false)
	g.answers(func(w http.ResponseWriter, _ *http.Request) { // the connection ends within the body
		w.Header().Set("Content-Length", "12")
		io.WriteString(w, "00 1")
	})
	cfg := form(g.URL)
	cfg.Success = netgsm
	d := checkFailure(t, newSender(t, cfg).Send(t.Context(), key, text("012345")), false, "broke off")
	if message.IsUnsent(d) {
		t.Error("an answer that broke off may be that of a message that was sent")
	}
}
