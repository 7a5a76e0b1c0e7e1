"""perftrail's measuring compared with its peers: bias, spread, floor, trees and cost, all tools in one run."""
