package access

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// A fourth push is not sent to a user who has not answered three, and three denials stop pushes (SEC-16).
func TestUnansweredPushesAreLimited(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		var flows []blackbox.Flow
		for i := range 4 {
			f := n.Login(t, demo)
			if blackbox.Offered(f) != (i < 3) {
				t.Errorf("start %d: %+v", i+1, f.MethodList)
			}
			flows = append(flows, f)
		}
		n.Complete(t, flows[3], flows[3].Method(t, "SMS"), n.Code(t, demo, "SMS")).
			Is(t, 200, "")
			// the challenge works without the push
		if all := p.List(t); len(all) != 3 {
			t.Errorf("%d wait", len(all))
		}
		n.Kill()
		n = s.Start("HTTP_PUBLIC_URL=" + p.N.URL) // the bound is stored in rows
		if f := n.Login(t, demo); blackbox.Offered(f) {
			t.Error("after a restart a fourth push is offered")
		}
		p.N = n
		for _, f := range flows[:3] {
			p.Answer(t, f, "DENIED").Is(t, 200, "")
		}
		if all := p.List(t); len(all) != 0 {
			t.Errorf("%d wait", len(all))
		}
		if f := n.Login(t, demo); blackbox.Offered(f) {
			t.Error("a push is offered after three denials")
		}
		// If the policy requires a push, the requirement stays: the start has to wait.
		who := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, who, "LOGIN", 2, `[["PUSH"],["SMS"]]`, `,"force":true`)
		if got := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 429, "RATE_LIMITED"); got.Header.Get(
			"retry-after",
		) == "" {
			t.Errorf("%s: no Retry-After", got)
		}
		s.Exec("UPDATE push SET sent_at = sent_at - 3600000, settled_at = settled_at - 3600000") // an hour passes
		if f := n.Login(t, demo); !blackbox.Offered(f) {
			t.Error("no push is offered after the pause")
		}
	})
}

// A caller with the password who starts repeatedly causes three pushes, although each start closes an older
// challenge (D-EXT-06). The owner is notified once. An approval is never refused.
func TestPushesSentAreLimited(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set(blackbox.Unlimited...).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		for i := range 30 {
			f := n.Login(t, demo)
			if !blackbox.Offered(f) {
				t.Fatalf("after %d approvals no push is offered", i)
			}
			p.Answer(t, f, "APPROVED").Is(t, 200, "")
		}
		notices := func() int { return s.Count("outbox WHERE challenge_id = '' AND channel = 'MAIL'") }
		sent, before := 0, notices()
		for range 50 {
			if blackbox.Offered(n.Login(t, demo)) {
				sent++
			}
		}
		if sent != 3 {
			t.Errorf("%d of 50 starts sent a push", sent)
		}
		if told := notices() - before; told != 1 {
			t.Errorf("the owner was notified %d times", told)
		}
		if l := n.Letters(t, demo.Mail); !slices.ContainsFunc(l, func(l blackbox.Letter) bool {
			return l.Code == "" && strings.Contains(l.Body, "127.0.0.1")
		}) {
			t.Errorf("the mail is %+v", l)
		}
		s.Exec("UPDATE push SET sent_at = sent_at - 600000") // ten minutes pass
		if !blackbox.Offered(n.Login(t, demo)) {
			t.Error("no push is offered after the window")
		}
	})
}

// The bound holds while nodes join and leave and requests go to every node.
func TestPushLimitHoldsInCluster(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, blackbox.Unlimited...)
	demo := c.AddUser("user")
	x, _ := c.Nodes[0].Session(t, demo)
	blackbox.Enroll(t, c.Nodes[0], demo, x, device.ES256, "")
	var sent, begun atomic.Int64
	var wg sync.WaitGroup
	nodes := slices.Clone(c.Nodes)
	for i := range 24 {
		wg.Go(func() {
			if i == 12 {
				nodes[2].Kill()
			}
			f, err := nodes[i%3].TryLogin(demo)
			if err != nil { // from a node that has left, or that waits for the owner's successor
				return
			}
			begun.Add(1)
			if blackbox.Offered(f) {
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	c.Forget(nodes[2])
	c.Join()
	blackbox.Whole(t, c)
	for i := range 6 {
		if blackbox.Offered(c.Nodes[i%3].Login(t, demo)) {
			sent.Add(1)
		}
	}
	if rows := c.Count("push WHERE state = 0"); rows < 1 || rows > 3 || sent.Load() > 3 || begun.Load() < 3 {
		t.Errorf("%d starts, %d with a push, %d in the rows", begun.Load(), sent.Load(), rows)
	}
}

// Number matching if the policy requires it, and the other code of the method (SEC-16, D-2FA-08).
func TestNumberMatchingIsRequiredByPolicy(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		if m := n.Login(t, demo).Method(t, "PUSH"); m.MatchNumber != "" {
			t.Errorf("without being asked for: %+v", m)
		}
		who := blackbox.Admin(t, s, n)
		n.Ok(t, "POST", "/admin/system/mfa/methods", `{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0}`, who)
		id := blackbox.Policy(t, n, who, "LOGIN", 1, `[["PUSH_OTP"],["PUSH"],["SMS"]]`, `,"numberMatching":true`)
		f := n.Login(t, demo)
		m := f.Method(t, "PUSH")
		if len(f.MethodList) != 2 || m.Expire != 90 || len(m.MatchNumber) != 2 {
			t.Fatalf("%+v", f.MethodList)
		}
		if all := p.List(t); !all[0].Data.NumberMatching ||
			strings.Contains(string(p.Ongoing(t).Body), `"`+m.MatchNumber+`"`) {
			t.Errorf("the device is shown %+v", all)
		}
		right, wrong := "APPROVED:"+m.MatchNumber, "APPROVED:"+blackbox.WrongFor(m.MatchNumber)
		for _, value := range []string{"APPROVED", wrong} {
			blackbox.AttemptsLeft(t, p.Answer(t, f, value))
		}
		done := p.Answer(t, f, right).Is(t, 200, "")
		blackbox.SameOutcome(t, done, p.Answer(t, f, right))

		// PUSH_OTP is a synonym of PUSH in requests.
		blackbox.ChangePolicy(t, n, who, id, `,"numberMatching":false`)
		f = n.Login(t, demo)
		plain, _ := p.Decision(t, f, "APPROVED")
		body := strings.Replace(string(plain), `"method":"PUSH"`, `"method":"PUSH_OTP"`, 1)
		h := p.Sign(t, "POST", blackbox.CompletePath, []byte(body),
			device.Claims{Challenge: f.ChallengeID, MethodID: f.Method(t, "PUSH").ID, Value: "APPROVED"})
		n.Do(t, "POST", blackbox.CompletePath, body, h).Is(t, 200, "")
	})
}
