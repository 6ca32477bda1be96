package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	guessers     = 32
	guessesFrom1 = 100 // of one address: more would be refused before the hash
)

// storm measures right logins from known addresses, alone and beside a storm of wrong passwords from ever new
// addresses. The limits are those of production.
func storm(b *bench) {
	p := b.sqlite([]string{"CASTELLAN_DEV=true", "CASTELLAN_LOG_LEVEL=error"})
	defer p.bare.close()
	s := p.serve(0)
	defer s.stop()
	s.codes.drop = true
	known := make([]*visitor, b.many(100, 40, 4))
	for i := range known {
		known[i] = need(visitorFrom(s, home(i)))
		defer known[i].Close()
	}
	logins := func() (took []float64) {
		for i, v := range known {
			began := time.Now()
			need(v.login(i))
			took = append(took, time.Since(began).Seconds()*1e3)
		}
		return took
	}
	logins() // from now on the addresses are known
	of := series{}
	for range min(b.rounds, 7) { // the limit of an account's messages allows no more
		b.await()
		calm := logins()
		var beside []float64
		began := time.Now()
		guesses := need(guess(s, len(known), func() error {
			return attempt(func() { beside = logins() })
		}))
		of.add("calm", median(calm))
		of.add("times", median(beside)/median(calm))
		of.add("p99", quantile(beside, 0.99))
		of.add("guesses", float64(guesses)/time.Since(began).Seconds())
	}
	r := &b.report
	r.begin("Right logins from known addresses beside wrong passwords from ever new ones")
	r.line("a right login, calm: p50", "ms", of["calm"], bar{})
	r.line(fmt.Sprintf("… beside %d lines of wrong passwords: p50, times the calm one", guessers), "×", of["times"],
		atMost(2))
	r.line("… p99", "ms", of["p99"], bar{})
	r.line("… wrong passwords judged meanwhile", "/s", of["guesses"], bar{})
}

// guess sends wrong passwords for the accounts from first on while f runs, and returns how many were judged.
func guess(s *server, first int, f func() error) (judged int64, err error) {
	var count, next, address atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	errs := make(chan error, guessers)
	for range guessers {
		all.Go(func() {
			for {
				n := address.Add(1)
				v, err := visitorFrom(s, net.IPv4(127, byte(2+n>>16), byte(n>>8), byte(n)))
				if err != nil {
					errs <- err
					return
				}
				for range guessesFrom1 {
					select {
					case <-stop:
						v.Close()
						return
					default:
					}
					account := first + int(next.Add(1))%(people-first)
					status, err := v.do("POST", "/auth/login", "", strings.Replace(loginBody(account), password, "wrong", 1))
					if err != nil || status != 401 && status != 429 && status != 503 {
						errs <- fmt.Errorf("a wrong password: %d %s: %w", status, v.body, err)
						v.Close()
						return
					}
					if status == 401 {
						count.Add(1)
					}
				}
				v.Close()
			}
		})
	}
	time.Sleep(200 * time.Millisecond) // all of them wait
	err = f()
	close(stop)
	all.Wait()
	close(errs)
	return count.Load(), errors.Join(err, <-errs)
}
