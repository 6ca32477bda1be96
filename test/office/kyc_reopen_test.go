package office

import (
	"encoding/base64"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A rejected identity returns to the queue after its user uploads another document or an operator reopens it
// (D-KYC-01).
func TestReopenKYC(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		me := s.AddUser("user")
		token, _ := n.Session(t, me)
		state := func() string { t.Helper(); return s.Text("SELECT kyc_confirm FROM users WHERE id = '" + me.ID + "'") }
		reopen := func(exit int) {
			t.Helper()
			if got := s.Command("", "user", "reopen-kyc", me.Mail); got.Code != exit || state() != "waitingApproval" {
				t.Errorf("exit %d, %s, %s", got.Code, got.ErrOut, state())
			}
		}
		reject := func() { s.Exec("UPDATE users SET kyc_confirm = 'rejected' WHERE id = '" + me.ID + "'") }
		reopen(1)
		reject()
		reopen(0)
		reject()
		n.Ok(t, "POST", "/document/upload-document", map[string]any{"fileName": "a.pdf", "description": "another",
			"base64Data": base64.StdEncoding.EncodeToString([]byte("%PDF-1.7"))},
			blackbox.Headers{"x-auth": token, "tenant-id": "default"})
		storetest.Equal(t, state(), "waitingApproval", "after an upload")
		blackbox.Until(t, blackbox.Within(5), "two audit rows", func() bool {
			return s.Count("audit WHERE action = 'KYC_REOPEN' AND user_id = $1", me.ID) == 2
		})
	})
}
