package main

import (
	"bytes"
	"fmt"
	"time"
)

// mailing measures the cost of a mailing to all users for the concurrent logins: the same load without a job and with
// one, in turn. The driver receives the mails, so only the job is measured.
func mailing(b *bench) error {
	warm, span := b.long(2*time.Second), b.long(6*time.Second)
	b.report.begin("Logins beside a mailing to %d accounts, %d clients, %s measured with it and without, per round",
		people, b.clients, span)
	return b.onEach(cheap(), 0, func(p *place, s *server) error { return b.besideMailing(p, s, warm, span) })
}

func (b *bench) besideMailing(p *place, s *server, warm, span time.Duration) error {
	v, token, err := administrator(s)
	if err != nil {
		return err
	}
	defer v.Close()
	of := series{}
	for round := range b.rounds {
		var rate, cpu [2]float64 // without, with
		for i := range rate {
			beside := (i + round) % 2 // the order alternates
			b.await()
			job := ""
			if beside == 1 {
				if job, err = v.mailAll(token, p.users[people], round); err != nil {
					return err
				}
			}
			w, err := flows([]*server{s}, p.process, b.clients, 0, people, warm, span)
			if err != nil {
				return err
			}
			rate[beside], cpu[beside] = w.rate(), w.each(w.server+w.base)
			if job != "" {
				mailed, err := v.endMailing(token, job)
				if err != nil {
					return err
				}
				of.add("mails", mailed/(warm+span).Seconds())
			}
		}
		of.add("without", rate[0])
		of.add("with", rate[1])
		of.add("cost", 100*(1-rate[1]/rate[0]))
		of.add("cpu", 100*(cpu[1]/cpu[0]-1))
	}
	r := &b.report
	r.line(p.name+": logins without a mailing", "/s", of["without"], bar{})
	r.line(p.name+": logins beside a mailing", "/s", of["with"], bar{})
	r.line(p.name+": … fewer, of each round", "%", of["cost"], atMost(5))
	r.line(p.name+": CPU of service and database per login, more", "%", of["cpu"], bar{})
	r.line(p.name+": mails meanwhile", "/s", of["mails"], bar{})
	return nil
}

// mailAll begins a mailing and names its job.
func (v *visitor) mailAll(token, admin string, round int) (job string, err error) {
	body := fmt.Sprintf(`{"base64String":"JVBERi0xLjQKJSVFT0YK","name":"Terms","description":"Round %d",`+
		`"sendEmail":true,"userId":"%s"}`, round, admin)
	err = v.expect(200, "POST", "/admin/terms-of-service", token, body)
	return member(v.body, "id"), err
}

// endMailing cancels a mailing that is still under way, and returns how many mails it sent.
func (v *visitor) endMailing(token, job string) (mailed float64, err error) {
	if err := v.expect(200, "POST", "/admin/jobs/"+job+"/cancel", token, "{}"); err != nil {
		return 0, err
	}
	if s := member(v.body, "status"); s != "cancelled" {
		return 0, fmt.Errorf("the mailing ended during the load: %s", v.body)
	}
	_, done, _ := bytes.Cut(v.body, []byte(`"done":`))
	_, err = fmt.Sscan(string(done), &mailed)
	return mailed, err
}
