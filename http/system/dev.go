package system

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/fault"
	"castellan/http/edge"
)

// Letter is a message in the development outbox.
type Letter struct {
	Channel string `json:"channel"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
	Code    string `json:"code"`
	// ChallengeID is the challenge that the code answers; "" for other messages.
	ChallengeID string    `json:"challengeId,omitempty"`
	At          time.Time `json:"at"`
}

// Dev is the part of development mode: pages that show codes and therefore answer only this
// machine. A Host that is not a loopback name, and any read from another origin, is refused,
// so that no web page can read them through the developer's browser. Requests that a proxy
// forwards from elsewhere are refused too, because many proxies set Host to localhost.
type Dev struct {
	// Letters lists the outbox, newest first; to is a phone or an address in
	// any spelling, "" for all. At most limit, where that is not 0.
	Letters func(ctx context.Context, to string, limit int) ([]Letter, error)
	// PublicURL is the URL in the signatures of devices; the demo page has one.
	PublicURL string
}

func (d *Dev) mount(s *edge.Server) {
	page(s, policyTo+devSockets+"; frame-src 'self'"+policyEnd, "/", "index.html", local)
	page(s, devPolicy, "/dev/outbox/page", "outbox.html", local)
	s.Raw(fiber.MethodGet, "/dev/service", func(c *fiber.Ctx) error {
		if err := local(c); err != nil {
			return err
		}
		return c.JSON(fiber.Map{"publicUrl": d.PublicURL})
	})
	s.Raw(fiber.MethodGet, "/dev/outbox", func(c *fiber.Ctx) error {
		if err := local(c); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		limit, err := strconv.Atoi(c.Query("limit", "0"))
		if err != nil {
			return fault.Invalid("limit", "must be a whole number")
		}
		if limit < 0 {
			return fault.Invalid("limit", "must not be negative")
		}
		letters, err := d.Letters(ctx, strings.Clone(c.Query("to")), limit)
		if err != nil {
			return err
		}
		return c.JSON(letters)
	})
}

func local(c *fiber.Ctx) error {
	host := c.Get(fiber.HeaderHost)
	if !edge.Loopback(host) {
		return fault.New(fault.Forbidden, "development pages are available only on localhost")
	}
	for _, name := range []string{fiber.HeaderXForwardedFor, fiber.HeaderForwarded, "X-Real-IP"} {
		for _, via := range c.Request().Header.PeekAll(name) {
			for ip := range strings.SplitSeq(string(via), ",") {
				if !edge.Loopback(strings.TrimSpace(ip)) {
					return fault.New(fault.Forbidden, "development pages are not available through a proxy")
				}
			}
		}
	}
	if site := c.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return fault.New(fault.Forbidden, "development pages are not available to other origins")
	}
	if origin := c.Get(fiber.HeaderOrigin); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != host {
			return fault.New(fault.Forbidden, "development pages are not available to other origins")
		}
	}
	return nil
}
