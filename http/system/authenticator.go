package system

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"castellan/http/edge"
)

// The page with which a browser approves as a device (D-EXT-09), in every mode, and the file
// of its service worker.
const (
	authenticatorPath = "/authenticator"
	workerFile        = "sw-authenticator.js"
)

// installable adds to the policy of a page the manifest and the worker that make it installable.
const installable = "; manifest-src 'self'; worker-src 'self'"

// mountAuthenticator serves the page, and the URL that the signatures of devices name.
func mountAuthenticator(s *edge.Server, o Options) {
	csp := policyTo + installable + policyEnd
	if o.Dev != nil { // the demo page shows it in a frame
		csp = policyTo + devSockets + installable +
			strings.Replace(policyEnd, "frame-ancestors 'none'", "frame-ancestors 'self'", 1)
	}
	page(s, csp, authenticatorPath, "authenticator.html")
	s.Raw(fiber.MethodGet, authenticatorPath+"/service", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderCacheControl, revalidate)
		return c.JSON(fiber.Map{"publicUrl": o.PublicURL})
	})
}
