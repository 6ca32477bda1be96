package blackbox

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
)

// ErrLost means that no answer arrived.
var ErrLost = errors.New("the connection was lost")

// Crowd calls send n times concurrently, with the indices 0 to n-1, and returns the answers.
func Crowd(t *testing.T, n int, send func(i int) (Answer, error)) []Answer {
	t.Helper()
	answers, errs := TryCrowd(n, send)
	storetest.Must(t, errors.Join(errs...))
	return answers
}

// TryCrowd is Crowd for answers that may be lost.
func TryCrowd(n int, send func(i int) (Answer, error)) ([]Answer, []error) {
	answers, errs := make([]Answer, n), make([]error, n)
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gate
			answers[i], errs[i] = send(i)
		})
	}
	ready.Wait()
	close(gate)
	done.Wait()
	return answers, errs
}

// CountByCode counts answers by status and code; "0" is no answer.
func CountByCode(answers []Answer) map[string]int {
	n := map[string]int{}
	for _, a := range answers {
		n[fmt.Sprint(a.Status, a.Code())]++
	}
	return n
}

func AttemptsLeft(t *testing.T, a Answer) int {
	t.Helper()
	p := a.Is(t, 422, "OTP_INVALID").Problem()
	if p.AttemptsLeft == nil || p.Field != "value" {
		t.Fatalf("no attemptsLeft, or of another field: %s", a)
	}
	return *p.AttemptsLeft
}

// ListedSession is a session in the list of its user.
type ListedSession struct {
	SessionID, CreatedAt, LastSeenAt, IP string
	CountryName                          *string
	DeviceBrand, DeviceModel, DeviceDesc string
	Current                              bool
}

func Sessions(t *testing.T, n *Node, token string) (all []ListedSession) {
	t.Helper()
	n.Ok(t, "GET", SessionsPath, nil, Headers{"x-auth": token}).Read(t, &all)
	return all
}

// Alike returns an answer without the parts that differ between two equal ones.
func Alike(a Answer) string {
	h := a.Header.Clone()
	for _, name := range []string{"Date", "X-Request-Id"} {
		h.Del(name)
	}
	p := a.Problem()
	var b strings.Builder
	h.Write(&b)
	return b.String() + strings.ReplaceAll(a.String(), p.RequestID, "")
}

type ErrorOf Answer

func (e ErrorOf) Error() string { return Answer(e).String() }
