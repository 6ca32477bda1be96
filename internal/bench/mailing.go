package main

import (
	"bytes"
	"fmt"
	"time"
)

// mailing measures the cost of a mailing to all users for the concurrent logins: the same load without a job and with
// one, in turn. The driver receives the mails, so only the job is measured.
func mailing(b *bench) {
	warm, span := b.long(2*time.Second), b.long(6*time.Second)
	b.report.begin("Logins beside a mailing to %d accounts, %d clients, %s measured with it and without, per round",
		people, b.clients, span)
	b.onEach(cheap(), 0, func(p *place, s *server) { b.besideMailing(p, s, warm, span) })
}

func (b *bench) besideMailing(p *place, s *server, warm, span time.Duration) {
	v, token := administrator(s)
	defer v.Close()
	of := series{}
	for round := range b.rounds {
		var rate, cpu [2]float64 // without, with
		for i := range rate {
			beside := (i + round) % 2 // the order alternates
			b.await()
			job := ""
			if beside == 1 {
				job = v.mailAll(token, p.users[people], round)
			}
			w := need(flows([]*server{s}, p.process, b.clients, 0, people, warm, span))
			rate[beside], cpu[beside] = w.rate(), w.each(w.server+w.base)
			if job != "" {
				mailed := v.endMailing(token, job)
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
}

// mailAll begins a mailing and names its job.
func (v *visitor) mailAll(token, admin string, round int) (job string) {
	body := fmt.Sprintf(`{"base64String":"JVBERi0xLjQKJSVFT0YK","name":"Terms","description":"Round %d",`+
		`"sendEmail":true,"userId":"%s"}`, round, admin)
	must(v.expect(200, "POST", "/admin/terms-of-service", token, body))
	return member(v.body, "id")
}

// endMailing cancels a mailing that is still under way, and returns how many mails it sent.
func (v *visitor) endMailing(token, job string) (mailed float64) {
	must(v.expect(200, "POST", "/admin/jobs/"+job+"/cancel", token, "{}"))
	if s := member(v.body, "status"); s != "cancelled" {
		must(fmt.Errorf("the mailing ended during the load: %s", v.body))
	}
	_, done, _ := bytes.Cut(v.body, []byte(`"done":`))
	need(fmt.Sscan(string(done), &mailed))
	return mailed
}
