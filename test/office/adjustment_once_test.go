package office

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

const adjusters = 64

// Of sixty-four concurrent equal adjustments one is booked, and all get its answer. Of sixty-four different
// ones with the same uniqueId one is booked, and the others are refused with code 1. A kill and a repetition
// of all requests do not change this.
func TestFaultsAdjustmentIsBookedOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		b := newBank(t, s)
		before := b.Count("transfer")
		for round := range adjustRounds {
			for _, same := range []bool{true, false} {
				b.adjustOnce(t, fmt.Sprintf("%d %v", round, same), same)
			}
		}
		storetest.Equal(t, b.Count("transfer")-before, 2*adjustRounds, "transfers")
		storetest.Must(t, b.verifies())
	})
}

// adjustOnce sends adjustments under one unique id, kills the service while they are under way, and repeats
// them until all are answered.
func (b *bank) adjustOnce(t *testing.T, uniqueID string, same bool) {
	var answers []blackbox.Answer
	var errs []error
	send := func() {
		answers, errs = blackbox.TryCrowd(adjusters, func(i int) (blackbox.Answer, error) {
			n := int64(1)
			if !same {
				n += int64(i)
			}
			return b.server.Load().Try("POST", blackbox.AdjustPath, map[string]any{"userId": b.users[0].ID,
				"currencyCode": "BTC", "networkCode": "BTC", "amount": coins(n), "type": "C", "uniqueId": uniqueID}, b.boss)
		})
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		b.server.Load().Kill()
	}()
	send()
	<-killed
	first := answers // the answers that arrived
	came := 0
	b.serve(false)
	blackbox.Until(t, blackbox.Within(10), "all are answered", func() bool {
		send()
		for i := range adjusters {
			if errs[i] != nil || answers[i].Status == 503 {
				return false
			}
		}
		return true
	})
	booked, refused := map[string]bool{}, 0
	for i, a := range answers {
		var body struct {
			Code *int
			Data *struct{ TransactionID string }
		}
		if a.Status != 200 || json.Unmarshal(a.Body, &body) != nil || (body.Code == nil) != (body.Data != nil) {
			t.Fatalf("%s: got %s", uniqueID, a)
		}
		if body.Code == nil {
			booked[string(a.Body)] = true
		} else if refused++; *body.Code != 1 {
			t.Errorf("%s: got %s", uniqueID, a)
		}
		if first[i].Status == 200 {
			if came++; string(first[i].Body) != string(a.Body) {
				t.Errorf("%s: before the kill %s, after it %s", uniqueID, first[i], a)
			}
		}
	}
	want := 0
	if !same {
		want = adjusters - 1
	}
	if len(booked) != 1 || refused != want {
		t.Errorf("%s: %d different bookings, %d refused, want 1 and %d", uniqueID, len(booked), refused, want)
	}
	t.Logf("%s: %d of %d were answered before the kill", uniqueID, came, adjusters)
}
