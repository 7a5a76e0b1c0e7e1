"""perftrail's measuring beside its peers': bias, spread, floor, trees and cost, all tools in one run."""
