"""Arithmetic of arrival, demand and service curves ([Q], network calculus). It knows no query and no plan."""
